package vercel

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
)

// TestPolicies writes networks in the vendor's words: there what is denied wins, here what is allowed.
func TestPolicies(t *testing.T) {
	everywhere := []string{"0.0.0.0/0"}
	for name, c := range map[string]struct {
		network adapters.Network
		want    string
	}{
		"everything":         {adapters.Network{Internet: true}, `{"mode":"allow-all"}`},
		"nothing":            {adapters.Network{}, `{"mode":"deny-all"}`},
		"all is denied":      {adapters.Network{Internet: true, DenyOut: everywhere}, `{"mode":"deny-all"}`},
		"some is denied":     {adapters.Network{Internet: true, DenyOut: []string{"198.51.100.0/24"}}, `{"allow":{"*":[]},"subnets":{"deny":["198.51.100.0/24"]}}`},
		"allowed beats it":   {adapters.Network{Internet: true, DenyOut: []string{"198.51.100.0/31"}, AllowOut: []string{"198.51.100.1"}}, `{"allow":{"*":[]},"subnets":{"allow":["198.51.100.1/32"],"deny":["198.51.100.0/32"]}}`},
		"some addresses":     {adapters.Network{Internet: true, DenyOut: everywhere, AllowOut: []string{"198.51.100.7"}}, `{"subnets":{"allow":["198.51.100.7/32"]}}`},
		"without a net":      {adapters.Network{AllowOut: []string{"198.51.100.0/24"}}, `{"subnets":{"allow":["198.51.100.0/24"]}}`},
		"some names":         {adapters.Network{Internet: true, DenyOut: everywhere, AllowOut: []string{"a.example.com", "*.example.org"}}, `{"allow":{"*.example.org":[],"a.example.com":[]},"subnets":{}}`},
		"headers":            {adapters.Network{Internet: true, Rules: []adapters.HeaderRule{{Host: "a.example.com", Headers: map[string]string{"X-Key": "k"}}}}, `{"allow":{"*":[],"a.example.com":[{"transform":[{"headers":{"X-Key":"k"}}]}]},"subnets":{}}`},
		"headers by pattern": {adapters.Network{Internet: true, DenyOut: everywhere, AllowOut: []string{"*.example.com"}, Rules: []adapters.HeaderRule{{Host: "a.example.com", Headers: map[string]string{"X-Key": "k"}}}}, `{"allow":{"*.example.com":[],"a.example.com":[{"transform":[{"headers":{"X-Key":"k"}}]}]},"subnets":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := policyOf(c.network)
			require.NoError(t, err)
			text, err := json.Marshal(made)
			require.NoError(t, err)
			require.JSONEq(t, c.want, string(text))
		})
	}
	for name, network := range map[string]adapters.Network{
		"a name is denied":               {Internet: true, DenyOut: []string{"example.com"}},
		"any name":                       {DenyOut: everywhere, AllowOut: []string{"*"}},
		"a port":                         {Internet: true, AllowOut: []string{"example.com:443"}},
		"headers to where one cannot go": {DenyOut: everywhere, Rules: []adapters.HeaderRule{{Host: "a.example.com"}}},
	} {
		_, err := policyOf(network)
		require.Equal(t, adapters.KindUnsupported, adapters.KindOf(err), name)
	}
}
