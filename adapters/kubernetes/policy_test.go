package kubernetes

import (
	"encoding/json"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
)

// What is allowed wins over what is denied, what nobody names follows the internet, and an exception that is everything
// leaves nothing.
func TestPolicies(t *testing.T) {
	c := &Cluster{config: Config{Namespace: "n"}}
	for _, one := range []struct {
		network       adapters.Network
		egress        string
		first, second bool // 192.0.2.1 and 192.0.2.2 can be reached
	}{
		{adapters.Network{}, `[]`, false, false},
		{adapters.Network{AllowOut: []string{"192.0.2.1"}}, `[{"to":[{"ipBlock":{"cidr":"192.0.2.1/32"}}]}]`, true, false},
		{adapters.Network{Internet: true, DenyOut: []string{"192.0.2.1/24", "2001:db8::/32"}, AllowOut: []string{"192.0.2.2"}},
			`[{"to":[{"ipBlock":{"cidr":"0.0.0.0/0","except":["192.0.2.0/24"]}}]},{"to":[{"ipBlock":{"cidr":"::/0","except":["2001:db8::/32"]}}]},{"to":[{"ipBlock":{"cidr":"192.0.2.2/32"}}]}]`, false, true},
		{adapters.Network{Internet: true, DenyOut: []string{"0.0.0.0/0"}}, `[{"to":[{"ipBlock":{"cidr":"::/0"}}]}]`, false, false},
	} {
		policy, err := c.policy("box", one.network)
		require.NoError(t, err)
		text, err := json.Marshal(policy.Spec.Egress)
		require.NoError(t, err)
		require.Equal(t, one.egress, string(text))
		require.Equal(t, map[string]string{labelBox: "box"}, policy.Spec.PodSelector.MatchLabels)
		require.False(t, open(one.network))
		require.Equal(t, one.first, reaches(one.network, netip.MustParseAddr("192.0.2.1")))
		require.Equal(t, one.second, reaches(one.network, netip.MustParseAddr("192.0.2.2")))
	}
	require.True(t, open(adapters.Network{Internet: true, AllowOut: []string{"192.0.2.1"}}))
	for _, network := range []adapters.Network{
		{AllowOut: []string{"name.example"}}, {Internet: true, DenyOut: []string{"*.example"}}, {Internet: true, Rules: []adapters.HeaderRule{{Host: "name.example"}}},
	} {
		require.Equal(t, adapters.KindUnsupported, adapters.KindOf((&Cluster{findings: Findings{Policies: true}}).admitNetwork(network)))
	}
	require.ErrorContains(t, (&Cluster{}).admitNetwork(adapters.Network{}), "not known to enforce")
}
