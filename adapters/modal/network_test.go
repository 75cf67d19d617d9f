package modal

import (
	"net/netip"
	"strings"
	"testing"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
)

func TestNetworkAccess(t *testing.T) {
	for name, c := range map[string]struct {
		network adapters.Network
		kind    pb.NetworkAccess_NetworkAccessType
		cidrs   []string
		domains []string
	}{
		"all":                 {adapters.Network{Internet: true}, pb.NetworkAccess_OPEN, nil, nil},
		"nothing":             {adapters.Network{}, pb.NetworkAccess_BLOCKED, nil, nil},
		"all, some by name":   {adapters.Network{Internet: true, AllowOut: []string{"1.1.1.1"}}, pb.NetworkAccess_OPEN, nil, nil},
		"an address":          {adapters.Network{AllowOut: []string{"1.1.1.1"}}, pb.NetworkAccess_ALLOWLIST, []string{"1.1.1.1/32"}, nil},
		"a range and a name":  {adapters.Network{AllowOut: []string{"10.1.2.3/8", "*.example.com"}}, pb.NetworkAccess_ALLOWLIST, []string{"10.0.0.0/8"}, []string{"*.example.com"}},
		"all but a half":      {adapters.Network{Internet: true, DenyOut: []string{"128.0.0.0/1"}}, pb.NetworkAccess_ALLOWLIST, []string{"0.0.0.0/1"}, nil},
		"all but everything":  {adapters.Network{Internet: true, DenyOut: []string{"0.0.0.0/0"}, AllowOut: []string{"example.com"}}, pb.NetworkAccess_ALLOWLIST, nil, []string{"example.com"}},
		"IPv6 is never there": {adapters.Network{Internet: true, DenyOut: []string{"::/0"}}, pb.NetworkAccess_OPEN, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := networkAccess(c.network)
			require.NoError(t, err)
			assert.Equal(t, c.kind, got.GetNetworkAccessType())
			assert.Equal(t, c.cidrs, got.GetAllowedCidrs())
			assert.Equal(t, c.domains, got.GetAllowedDomains())
		})
	}
}

// TestOutboundPolicy says what Modal can be told of headers, and refuses the rest by name.
func TestOutboundPolicy(t *testing.T) {
	rule := func(host string, headers int) []adapters.HeaderRule {
		made := adapters.HeaderRule{Host: host, Headers: map[string]string{}}
		for n := range headers {
			made.Headers["X-"+strings.Repeat("a", n+1)] = "a $ecret"
		}
		return []adapters.HeaderRule{made}
	}
	for name, c := range map[string]struct {
		network adapters.Network
		refusal string
		headers int
	}{
		"none":             {adapters.Network{Internet: true}, "", 0},
		"one":              {adapters.Network{Internet: true, Rules: rule("api.example.com", 1)}, "", 1},
		"addresses":        {adapters.Network{AllowOut: []string{"1.1.1.1"}, Rules: rule("api.example.com", 1)}, "", 1},
		"nothing goes out": {adapters.Network{Rules: rule("api.example.com", 1)}, "", 0},
		"names":            {adapters.Network{AllowOut: []string{"api.example.com"}, Rules: rule("api.example.com", 1)}, "only some names", 0},
		"a pattern":        {adapters.Network{Internet: true, Rules: rule("*.example.com", 1)}, "whole names of hosts", 0},
		"no full name":     {adapters.Network{Internet: true, Rules: rule("localhost", 1)}, "whole names of hosts", 0},
		"too many":         {adapters.Network{Internet: true, Rules: rule("api.example.com", maxHeaders+1)}, "at most 25", 0},
	} {
		t.Run(name, func(t *testing.T) {
			access, err := networkAccess(c.network)
			require.NoError(t, err)
			policy, err := outboundPolicy(c.network, access)
			if c.refusal != "" {
				require.Equal(t, adapters.KindUnsupported, adapters.KindOf(err))
				require.ErrorContains(t, err, c.refusal)
				require.NotContains(t, err.Error(), "ecret")
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.headers > 0, policy != nil)
			for _, one := range policy.GetHeaderReplacements() {
				require.Len(t, one.GetHeaders(), c.headers)
				require.Equal(t, "a $$ecret", one.GetHeaders()["X-a"])
			}
		})
	}
}

// TestWithout looks at addresses on both sides of every edge.
func TestWithout(t *testing.T) {
	out := []netip.Prefix{netip.MustParsePrefix("8.8.8.8/32"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("255.255.255.255/32")}
	left := without(everywhere, out)
	in := func(address string) bool {
		for _, p := range left {
			if p.Contains(netip.MustParseAddr(address)) {
				return true
			}
		}
		return false
	}
	for address, want := range map[string]bool{
		"8.8.8.8": false, "8.8.8.7": true, "8.8.8.9": true, "100.63.255.255": true, "100.64.0.0": false, "100.127.255.255": false,
		"100.128.0.0": true, "255.255.255.255": false, "255.255.255.254": true, "0.0.0.0": true,
	} {
		assert.Equal(t, want, in(address), address)
	}
}
