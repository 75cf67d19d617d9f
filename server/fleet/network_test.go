package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
)

func TestTheNetworkIsChanged(t *testing.T) {
	b := able(t, adapters.LevelMemory, nil)
	ctx, f := t.Context(), b.fleet
	req := request()
	req.Network = store.Network{AllowPublicTraffic: ptr(false), AllowOut: []string{"1.1.1.1"}, DenyOut: []string{store.AllTraffic}}
	sb := b.create(req)
	require.Equal(t, adapters.Network{AllowOut: []string{"1.1.1.1"}, DenyOut: []string{}, PrivatePorts: true}, b.provider.box(sb.ID).spec.Network)
	closed := store.Network{AllowInternetAccess: ptr(false)}
	require.NoError(t, f.SetNetwork(ctx, "team", sb.ID, closed, nil))
	require.Equal(t, adapters.Network{PrivatePorts: true}, b.provider.networks[sb.ID])
	now, err := f.Sandbox(ctx, "team", sb.ID)
	require.NoError(t, err)
	require.False(t, now.NetworkPending)
	require.False(t, now.Network.PublicTraffic(), "who may reach its ports stays")
	requireKind(t, adapters.KindNotFound, f.SetNetwork(ctx, "other", sb.ID, closed, nil))
	rules := []adapters.HeaderRule{{Host: "a.example", Headers: map[string]string{"A": "b"}}}
	err = f.SetNetwork(ctx, "team", sb.ID, store.Network{RuleHosts: []string{"a.example"}}, rules)
	requireKind(t, adapters.KindUnsupported, err)
	require.ErrorContains(t, err, "inject_headers")

	b.provider.with(func(p *fake) {
		p.onPower = func(string, string) error { return adapters.Errorf(adapters.KindUnsupported, "not this one") }
	})
	requireKind(t, adapters.KindUnsupported, f.SetNetwork(ctx, "team", sb.ID, store.Network{}, nil))
	after, err := f.Sandbox(ctx, "team", sb.ID)
	require.NoError(t, err)
	require.Equal(t, now.Network, after.Network, "what was refused was not written")
	require.False(t, after.NetworkPending)
}

// The facade dies, or the place does not answer, between the record and the place.
func TestAPendingNetworkIsApplied(t *testing.T) {
	b := able(t, adapters.LevelMemory, nil)
	sb := b.create(request())
	b.provider.with(func(p *fake) {
		p.onPower = func(string, string) error { return adapters.Errorf(adapters.KindUnavailable, "away") }
	})
	requireKind(t, adapters.KindUnavailable, b.fleet.SetNetwork(t.Context(), "team", sb.ID, store.Network{AllowInternetAccess: ptr(false)}, nil))
	b.provider.with(func(p *fake) { p.onPower = nil })
	b.restart()
	require.Eventually(t, func() bool {
		b.fleet.Reconcile(t.Context())
		now, err := b.store.Sandboxes.Get(t.Context(), sb.ID)
		return err == nil && !now.NetworkPending
	}, 30*time.Second, 10*time.Millisecond)
	require.Equal(t, adapters.Network{}, b.provider.networks[sb.ID])
}
