//go:build linux

package provider_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters/local"
	"github.com/isthmus/isthmus/conformance/provider"
	"github.com/isthmus/isthmus/server/certificate"
)

// nearby is an outside, with whom to ask for its names and whom to trust.
type nearby struct {
	*provider.Outside
	resolvers []netip.AddrPort
	roots     *x509.CertPool
}

// outside makes a small internet beside this machine: a network namespace at the other end of a cable, with two
// servers at public addresses that nobody has (RFC 5737), and a resolver that knows their names. It ends with the test.
func outside(t *testing.T) nearby {
	t.Helper()
	holder := exec.Command("unshare", "--net", "sh", "-c", "echo there && exec cat") // ends with its input
	in, err := holder.StdinPipe()
	require.NoError(t, err)
	says, err := holder.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, holder.Start())
	t.Cleanup(func() {
		require.NoError(t, in.Close())
		require.NoError(t, holder.Wait())
	})
	said, err := bufio.NewReader(says).ReadString('\n')
	require.NoError(t, err, "the holder of the network: %q", said)
	pid := holder.Process.Pid
	cable, base := plug(t, pid)
	address := func(n int) string { return fmt.Sprintf("203.0.113.%d", base+n) }
	ip(t, fmt.Sprintf("addr add %s/29 dev %s", address(1), cable))
	ip(t, "link set up "+cable)
	for _, line := range []string{"link set up lo", "link set up far", "addr add " + address(2) + "/29 dev far", "addr add " + address(3) + "/29 dev far"} {
		out, err := exec.Command("nsenter", append([]string{"--target", fmt.Sprint(pid), "--net", "ip"}, strings.Fields(line)...)...).CombinedOutput()
		require.NoError(t, err, "%s: %s", line, out)
	}
	o := &provider.Outside{
		First: serveThere(t, pid, address(2), nil), Second: serveThere(t, pid, address(3), nil),
		FirstName: "first.near.test", SecondName: "second.far.test",
	}
	secure, roots := certified(t, o.FirstName)
	o.Secure = serveThere(t, pid, address(2), secure)
	resolver := nameServer(t, map[string]netip.Addr{o.FirstName: o.First.Addr(), o.SecondName: o.Second.Addr()})
	return nearby{o, []netip.AddrPort{resolver}, roots}
}

// plug makes a cable to the network of a process, and returns its name and the last byte of its eight addresses. Of
// all tests on this machine at once, in whatever programs, each has its own: the kernel gives a name once.
func plug(t *testing.T, pid int) (cable string, base int) {
	t.Helper()
	for n := range 32 {
		cable := fmt.Sprintf("outside%d", n)
		out, err := exec.Command("ip", "link", "add", cable, "type", "veth", "peer", "name", "far", "netns", strconv.Itoa(pid)).CombinedOutput()
		if err == nil {
			return cable, n * 8
		}
		require.Contains(t, string(out), "File exists", "%v", err)
	}
	require.Fail(t, "all addresses are in use by other tests")
	return "", 0
}

// certified makes a certificate for a name, and says whom to trust for it.
func certified(t *testing.T, name string) (*tls.Config, *x509.CertPool) {
	t.Helper()
	files, _, err := certificate.Make(t.TempDir(), name, false, time.Now())
	require.NoError(t, err)
	pair, err := tls.LoadX509KeyPair(files.Certificate, files.Key)
	require.NoError(t, err)
	authority, err := os.ReadFile(files.Authority)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(authority))
	return &tls.Config{Certificates: []tls.Certificate{pair}}, roots
}

func ip(t *testing.T, args string) {
	t.Helper()
	out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput()
	require.NoError(t, err, "ip %s: %s", args, out)
}

// serveThere answers every request with 200 and the header that it is asked for, in the network of a process; over TLS
// with a certificate.
func serveThere(t *testing.T, pid int, address string, secure *tls.Config) netip.AddrPort {
	t.Helper()
	l, err := listenThere(pid, net.JoinHostPort(address, "0"))
	require.NoError(t, err)
	at := netip.MustParseAddrPort(l.Addr().String())
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get(provider.EchoedHeader))
	})}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-done, http.ErrServerClosed)
	})
	return at
}

// listenThere listens in the network of a process: on a thread that goes there and does not come back.
func listenThere(pid int, address string) (l net.Listener, err error) {
	local.OnThread(func() {
		var fd int
		if fd, err = unix.Open(fmt.Sprintf("/proc/%d/ns/net", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return
		}
		if err = errors.Join(unix.Setns(fd, unix.CLONE_NEWNET), unix.Close(fd)); err == nil {
			l, err = net.Listen("tcp", address)
		}
	})
	return l, err
}

// nameServer answers for a few names.
func nameServer(t *testing.T, names map[string]netip.Addr) netip.AddrPort {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &dns.Server{PacketConn: c, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		answer := new(dns.Msg).SetReply(q)
		name := strings.ToLower(strings.TrimSuffix(q.Question[0].Name, "."))
		if a, known := names[name]; !known {
			answer.Rcode = dns.RcodeNameError
		} else if q.Question[0].Qtype == dns.TypeA {
			answer.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1}, A: a.AsSlice()}}
		}
		_ = w.WriteMsg(answer)
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.ActivateAndServe() }()
	t.Cleanup(func() { _ = c.Close(); <-done })
	return netip.MustParseAddrPort(c.LocalAddr().String())
}
