package egress

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPolicyAllows(t *testing.T) {
	private6 := Policy{Internet: true, AllowPrivate: []netip.Prefix{netip.MustParsePrefix("fc00::/7")}}
	all := Policy{Internet: true}
	some := Policy{Internet: true, AllowPrivate: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fc00::/7")}}
	for _, c := range []struct {
		policy Policy
		addr   string
		want   bool
	}{
		{Policy{}, "203.0.113.10", false},
		{all, "203.0.113.10", true},
		{all, "2606:4700::1", true},
		{all, "10.1.2.3", false},
		{some, "10.1.2.3", true},
		{some, "fd12::1", true},
		{some, "192.168.1.1", false},
		{some, "10.0.2.100", false},
		{some, "10.0.2.3", false},
		{some, "fd00:ec2::254", false},
		{private6, "fd00:ec2::23", false},
		{private6, "fd00:ec2:ffff::1", false},
		{private6, "fd20:ce::254", false},
		{private6, "fd20:ce::253", true},
		{private6, "fd00:ec3::1", true},
		{all, "169.254.169.254", false},
		{all, "::ffff:203.0.113.10", false},
		{all, "::203.0.113.10", false},
		{all, "64:ff9b::cb00:710a", false},
		{all, "255.255.255.255", false},
		{all, "239.1.1.1", false},
		{all, "ff02::1", false},
		{all, "fe80::1%eth0", false},
		{all, "::", false},
		{all, "0.0.0.0", false},
	} {
		require.Equal(t, c.want, c.policy.decide(netip.MustParseAddr(c.addr)) == allowed, c.addr)
	}
}

func TestPolicyValidate(t *testing.T) {
	require.NoError(t, Policy{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("192.168.7.0/24")}}.Validate())
	for _, s := range []string{"0.0.0.0/0", "127.0.0.0/8", "169.254.0.0/16", "203.0.113.0/24", "192.168.0.0/15", "::/0"} {
		require.ErrorContains(t, Policy{AllowPrivate: []netip.Prefix{netip.MustParsePrefix(s)}}.Validate(), "private range", s)
	}
	require.Error(t, Policy{AllowPrivate: []netip.Prefix{{}}}.Validate())
	require.Error(t, Policy{Resolvers: []netip.AddrPort{{}}}.Validate())
}

func TestNameservers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "resolv.conf")
	require.NoError(t, os.WriteFile(file, []byte("# nameserver 192.0.2.9\nsearch example\nnameserver 192.0.2.1\nnameserver 2001:db8::1 \nnameserver x\n"), 0o600))
	require.Equal(t, []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:53"), netip.MustParseAddrPort("[2001:db8::1]:53")}, nameservers(file))
	require.Empty(t, nameservers(file+"x"))
}
