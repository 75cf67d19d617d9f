package fleet

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
)

// An open breaker says that there is no room, but making some would change nothing.
func TestStockDoesNotGiveWayToABreaker(t *testing.T) {
	b, provider := startStocked(t, nil)
	b.full(provider, 2)
	p := b.fleet.pools.get("one")
	p.alone.Store(false)
	for range breakerRow {
		done, err := p.admit()
		require.NoError(t, err)
		done(adapters.Errorf(adapters.KindUnavailable, "away"))
	}
	require.True(t, p.health.isOpen())
	m := b.fleet.makings.begin(newID(), false)
	err := b.fleet.obtain(t.Context(), m, adapters.Spec{BoxID: m.id, Attempt: "none fits"}, p)
	require.ErrorIs(t, err, errNotTried)
	requireKind(t, adapters.KindCapacity, err)
	b.fleet.makings.finish(m, store.Sandbox{}, err)
	require.Equal(t, 2, provider.inStock())
	provider.with(func(*fake) { require.Equal(t, 2, provider.stocks, "none was made again") })
}
