package fleet

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
)

// twoPools is a bench with a second pool, in which the sandbox that it returns is.
func twoPools(t *testing.T) (*bench, *fake, store.Sandbox) {
	t.Helper()
	other := newFake()
	t.Cleanup(other.health.Close)
	b := start(t, func(c *Config) {
		c.Timing.Call = 300 * time.Millisecond
		c.Pools = append([]Pool{{Name: "other", Provider: other}}, c.Pools...)
	})
	sb := b.create(request())
	require.Equal(t, "other", sb.Pool)
	return b, other, sb
}

func TestAPoolThatDoesNotAnswerDelaysTheStartByTheBound(t *testing.T) {
	b, other, sb := twoPools(t)
	other.with(func(p *fake) {
		p.before = func(context.Context, adapters.Spec) error { return adapters.Errorf(adapters.KindCapacity, "full") }
	})
	died := b.create(request())
	require.Equal(t, "one", died.Pool)
	b.stop()
	other.with(func(p *fake) { p.silent = true })
	b.provider.die(died.BoxID)
	began := time.Now()
	b.up()
	require.Less(t, time.Since(began), 5*time.Second)
	b.gone(died.ID)
	require.NotNil(t, other.box(sb.BoxID), "that it does not answer does not mean that its boxes are gone")
}

func TestAPoolThatDoesNotAnswerHoldsUpNoOtherPoolsEnds(t *testing.T) {
	b, other, sb := twoPools(t)
	more := []store.Sandbox{sb}
	for range 10 {
		more = append(more, b.create(request()))
	}
	other.with(func(p *fake) {
		p.silent = true
		p.before = func(context.Context, adapters.Spec) error { return adapters.Errorf(adapters.KindCapacity, "full") }
	})
	here := b.create(request())
	require.Equal(t, "one", here.Pool)
	b.fleet.pools.get("other").bound = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, one := range more {
		b.fleet.tasks.start(func(context.Context) { _ = b.fleet.destroy(ctx, one) })
	}
	require.Eventually(t, func() bool { return len(b.fleet.pools.get("other").destroying) == 8 }, 30*time.Second, time.Millisecond)
	require.NoError(t, b.fleet.Kill(t.Context(), "team", here.ID))
}

func TestAnExtensionWaitsNoLongerThanItsCaller(t *testing.T) {
	b := start(t, nil)
	sb := b.create(request())
	one := b.fleet.homes.get(sb.ID)
	one.extending <- struct{}{} // another call that does not come back
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, b.fleet.extend(ctx, one), context.DeadlineExceeded)
	<-one.extending
	require.NoError(t, b.fleet.extend(t.Context(), one))
}

func TestCallsAreBounded(t *testing.T) {
	b := start(t, func(c *Config) { c.Timing.Call = 20 * time.Millisecond })
	sb := b.create(request())
	b.provider.with(func(p *fake) { p.silent = true })
	p, ctx := b.fleet.pools.get("one"), t.Context()
	_, err := p.Get(ctx, sb.BoxID)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = p.List(ctx, "")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, p.Destroy(ctx, sb.BoxID), context.DeadlineExceeded)
	require.ErrorIs(t, p.extend(ctx, sb.BoxID, now()), context.DeadlineExceeded)
	requireKind(t, adapters.KindUnavailable, b.fleet.Kill(ctx, "team", sb.ID))
}
