package kubernetes

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"
)

// resolver answers names below localhost, as browsers and curl do by themselves and Python and Node do not, and
// returns what runs a program that asks it.
func resolver(t *testing.T) []string {
	t.Helper()
	packets, err := net.ListenPacket("udp", "127.0.0.77:53")
	require.NoError(t, err)
	server := &dns.Server{PacketConn: packets, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		answer := new(dns.Msg).SetReply(r)
		question := r.Question[0]
		switch {
		case !strings.HasSuffix(question.Name, "localhost."):
			answer.Rcode = dns.RcodeNameError
		case question.Qtype == dns.TypeA:
			answer.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: question.Name, Rrtype: dns.TypeA, Class: dns.ClassINET}, A: net.IPv4(127, 0, 0, 1)}}
		}
		_ = w.WriteMsg(answer)
	})}
	go func() { _ = server.ActivateAndServe() }()
	t.Cleanup(func() { _ = server.Shutdown() })
	file := filepath.Join(t.TempDir(), "resolv.conf")
	require.NoError(t, os.WriteFile(file, []byte("nameserver 127.0.0.77\n"), 0o644))
	return []string{"unshare", "--mount", "sh", "-c", `mount --bind "$0" "$(realpath /etc/resolv.conf)" && exec "$@"`, file}
}
