//go:build linux

package local_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local"
)

// lookUp is what a box gets for a name: what it is not allowed is not looked up, which needs no internet to be seen.
const lookUp = "getent ahostsv4 some.name.test | head -1 | cut -d' ' -f1"

func TestTheNetworkChangesWhileABoxRuns(t *testing.T) {
	t.Setenv(envResolver, resolver(t).String())
	c := withResolver(folder(t))
	l, err := local.Open(c)
	require.NoError(t, err)
	t.Cleanup(func() { closed(t, l, c) })
	id := create(t, l)
	finds := func(want string) {
		t.Helper()
		require.Equal(t, want, strings.TrimSpace(sh(t, l, id, "user", lookUp).stdout))
	}
	finds("")
	require.NotContains(t, sh(t, l, id, "user", "cat /proc/net/route").stdout, "lo", "there is no way out yet")
	for range 2 {
		for _, n := range []struct {
			network adapters.Network
			want    string
		}{
			{adapters.Network{Internet: true}, "192.0.2.7"},
			{adapters.Network{}, ""},
			{adapters.Network{AllowOut: []string{"*.name.test"}, DenyOut: []string{"0.0.0.0/0"}, Internet: true}, "192.0.2.7"},
			{adapters.Network{AllowOut: []string{"other.test", "192.0.2.0/24"}}, ""},
			{adapters.Network{Internet: true, DenyOut: []string{"192.0.2.7"}}, "192.0.2.7"},
		} {
			require.NoError(t, l.SetNetwork(t.Context(), id, n.network))
			finds(n.want)
			require.NoError(t, l.Close())
			l, err = local.Open(c) // the next facade follows the same rules
			require.NoError(t, err)
			finds(n.want)
		}
	}
	pause(t, l, id)
	require.Equal(t, adapters.KindPrecondition, adapters.KindOf(l.SetNetwork(t.Context(), id, adapters.Network{})))
	resume(t, l, id)
	finds("")
	require.NoError(t, l.SetNetwork(t.Context(), id, adapters.Network{Internet: true}))
	finds("192.0.2.7")
}

func TestRulesThatAreNone(t *testing.T) {
	l := open(t)
	id := create(t, l, online)
	for name, c := range map[string]struct {
		network adapters.Network
		want    adapters.Kind
	}{
		"a name is denied":   {adapters.Network{DenyOut: []string{"some.test"}}, adapters.KindInvalid},
		"no address":         {adapters.Network{AllowOut: []string{"1.2.3.4/33"}}, adapters.KindInvalid},
		"no name":            {adapters.Network{AllowOut: []string{"a b"}}, adapters.KindInvalid},
		"too many":           {adapters.Network{AllowOut: make([]string, 1001)}, adapters.KindInvalid},
		"headers for a host": {adapters.Network{Rules: []adapters.HeaderRule{{Host: "a.test"}}}, adapters.KindUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, adapters.KindOf(l.SetNetwork(t.Context(), id, c.network)))
			s := spec(newID())
			s.Network = c.network
			_, err := l.Create(t.Context(), s)
			require.Equal(t, c.want, adapters.KindOf(err))
		})
	}
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(l.SetNetwork(t.Context(), newID(), adapters.Network{})))
	blind := open(t, func(c *local.Config) { c.NoEgress = true })
	require.Nil(t, adapters.PowersOf(blind).Networker)
	s := spec(newID())
	s.Network.AllowOut = []string{"1.2.3.4"}
	_, err := blind.Create(t.Context(), s)
	require.Equal(t, adapters.KindUnsupported, adapters.KindOf(err))
}
