package fleet

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/translate/placement"
)

func TestDrainingPool(t *testing.T) {
	r := startPools(t, nil, "a", "b")
	old := r.create(request())
	require.Equal(t, "a", old.Pool)
	set := append([]Pool(nil), r.pools...)
	facts(&set[0], func(p *placement.Pool) { p.Draining = true })
	require.NoError(t, r.fleet.Reload(t.Context(), set, placement.Settings{}))
	require.Equal(t, "b", r.create(request()).Pool)
	_, err := r.fleet.Route(t.Context(), old.ID)
	require.NoError(t, err, "what is there is served")
	_, err = r.fleet.Create(t.Context(), asking(t, "pools=a"))
	requireKind(t, adapters.KindCapacity, err)
	require.ErrorContains(t, err, "a is draining")
	require.NoError(t, r.fleet.Kill(t.Context(), "team", old.ID))
}

func TestRemovingAPool(t *testing.T) {
	r := startPools(t, nil, "a", "b")
	old := r.create(request())
	err := r.fleet.Reload(t.Context(), r.pools[1:], placement.Settings{})
	requireKind(t, adapters.KindPrecondition, err)
	require.ErrorContains(t, err, "a (1)")
	require.Equal(t, "a", r.create(request()).Pool, "nothing has changed")
	all, _ := r.fleet.All(t.Context())
	for _, sb := range all {
		require.NoError(t, r.fleet.Kill(t.Context(), "team", sb.ID))
	}
	require.NoError(t, r.fleet.Reload(t.Context(), r.pools[1:], placement.Settings{}))
	require.Equal(t, "b", r.create(request()).Pool)
	_, err = r.fleet.Create(t.Context(), asking(t, "pools=a"))
	requireKind(t, adapters.KindInvalid, err)
	_, err = r.fleet.Route(t.Context(), old.ID)
	requireKind(t, adapters.KindNotFound, err)
}

func TestAddingAPool(t *testing.T) {
	r := startPools(t, nil, "a")
	added := newFake()
	t.Cleanup(added.health.Close)
	running := make(chan struct{})
	set := append([]Pool{{Name: "new", Provider: &watched{fake: added, running: running}}}, r.pools...)
	require.NoError(t, r.fleet.Reload(t.Context(), set, placement.Settings{}))
	<-running
	require.Equal(t, "new", r.create(request()).Pool)
}

// watched tells when its background work has begun.
type watched struct {
	*fake
	running chan struct{}
}

func (w *watched) Run(ctx context.Context) error {
	close(w.running)
	<-ctx.Done()
	return nil
}

func TestTheOnlyPoolThatTakesCreatesIsAlwaysTried(t *testing.T) {
	r := startPools(t, func(c *Config) { facts(&c.Pools[1], func(p *placement.Pool) { p.Draining = true }) }, "a", "b")
	r.fakes["a"].before = failing(adapters.KindCapacity)
	for range 3 * breakerRow {
		_, err := r.fleet.Create(t.Context(), request())
		requireKind(t, adapters.KindCapacity, err)
	}
	require.Equal(t, 3*breakerRow, r.fakes["a"].creates)
	require.Equal(t, placement.BreakerOpen, r.fleet.States()[0].Live.Breaker, "and it is shown")
	r.fakes["a"].with(func(f *fake) { f.before = nil })
	r.create(request())
}

func TestReloadIsAllOrNothing(t *testing.T) {
	r := startPools(t, nil, "a", "b")
	other := newFake()
	t.Cleanup(other.health.Close)
	for name, set := range map[string][]Pool{
		"no pool":         nil,
		"one name twice":  {r.pools[0], r.pools[1], {Name: "a", Provider: other}},
		"another account": {{Name: "a", Provider: other}, r.pools[1]},
	} {
		require.Error(t, r.fleet.Reload(t.Context(), set, placement.Settings{Rank: []string{"cost"}}), name)
		require.Len(t, r.fleet.States(), 2)
		require.Equal(t, "a", r.create(request()).Pool)
	}
}

func TestReloadHealsCredentials(t *testing.T) {
	r := startPools(t, nil, "a", "b")
	r.fakes["a"].before = failing(adapters.KindCredentials)
	require.Equal(t, "b", r.create(request()).Pool)
	r.fakes["a"].with(func(f *fake) { f.before = nil })
	require.Equal(t, "b", r.create(request()).Pool)
	require.Equal(t, 1, r.fakes["a"].creates)
	require.NoError(t, r.fleet.Reload(t.Context(), r.pools, placement.Settings{}))
	require.Equal(t, "a", r.create(request()).Pool)
}

// Creates and reloads that take a pool away and bring it back: no sandbox is ever in a pool that is not there.
func TestReloadsDuringCreates(t *testing.T) {
	r := startPools(t, nil, "a", "b")
	var stop atomic.Bool
	ended := make(chan struct{})
	removals := 0
	go func() {
		defer close(ended)
		for !stop.Load() {
			if r.fleet.Reload(context.Background(), r.pools[1:], placement.Settings{}) == nil {
				removals++
			}
			_ = r.fleet.Reload(context.Background(), r.pools, placement.Settings{})
		}
	}()
	for range 20 {
		together(5, func(int) {
			sb, err := r.fleet.Create(t.Context(), request())
			if err != nil {
				t.Errorf("create: %v", err)
				return
			}
			if err := r.fleet.Kill(context.Background(), "team", sb.ID); err != nil {
				t.Errorf("kill: %v", err)
			}
		})
	}
	stop.Store(true)
	<-ended
	require.Positive(t, removals)
	require.Eventually(t, func() bool { return r.live() == 0 }, 30*time.Second, time.Millisecond)
}

func TestRemovedPoolLeavesNoStock(t *testing.T) {
	other := newFake()
	t.Cleanup(other.health.Close)
	keep := Pool{Name: "two", Provider: other}
	var stocked Pool
	b, p := startStocked(t, func(c *Config, _ *stocking) {
		stocked = c.Pools[0]
		c.Pools = append(c.Pools, keep)
	})
	b.full(p, 2)
	drained := stocked
	facts(&drained, func(said *placement.Pool) { said.Draining = true })
	require.NoError(t, b.fleet.Reload(t.Context(), []Pool{drained, keep}, placement.Settings{}))
	b.full(p, 0)
	require.NoError(t, b.fleet.Reload(t.Context(), []Pool{stocked, keep}, placement.Settings{}))
	b.full(p, 2)
	require.NoError(t, b.fleet.Reload(t.Context(), []Pool{keep}, placement.Settings{}))
	require.Zero(t, p.inStock())
}
