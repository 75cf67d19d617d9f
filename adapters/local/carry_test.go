//go:build linux

package local_test

import (
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters/local"
)

// envResolver is the address of the test's own resolver.
const envResolver = "LOCAL_TEST_RESOLVER"

// resolver answers every name with one address.
func resolver(t *testing.T) netip.AddrPort {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &dns.Server{PacketConn: c, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		answer := new(dns.Msg).SetReply(q)
		if q.Question[0].Qtype == dns.TypeA {
			answer.Answer = []dns.RR{&dns.A{
				Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1}, A: net.IPv4(192, 0, 2, 7),
			}}
		}
		_ = w.WriteMsg(answer)
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.ActivateAndServe() }()
	t.Cleanup(func() { _ = c.Close(); <-done })
	return netip.MustParseAddrPort(c.LocalAddr().String())
}

// withResolver uses the resolver that the environment names, if it names one.
func withResolver(c local.Config) local.Config {
	if address, err := netip.ParseAddrPort(os.Getenv(envResolver)); err == nil {
		c.Resolvers = []netip.AddrPort{address}
	}
	return c
}

// A look-up is answered by the facade that carries the box's traffic, and by nobody else.
func TestTheInternetIsCarriedAgainAfterARestart(t *testing.T) {
	t.Setenv(envResolver, resolver(t).String())
	const lookUp = "getent ahostsv4 some.name.test | head -1 | cut -d' ' -f1"
	c := withResolver(folder(t))
	first, lines := facade(t, c, "1")
	require.True(t, lines.Scan())
	id := lines.Text()
	require.NoError(t, first.Process.Kill())
	_ = first.Wait()

	l, err := local.Open(c)
	require.NoError(t, err)
	t.Cleanup(func() { closed(t, l, c) })
	require.Equal(t, "192.0.2.7\n", sh(t, l, id, "user", lookUp).stdout)
	fresh := create(t, l, online)
	require.Equal(t, "192.0.2.7\n", sh(t, l, fresh, "user", lookUp).stdout)
	off := create(t, l)
	require.Empty(t, sh(t, l, off, "user", lookUp).stdout)
}
