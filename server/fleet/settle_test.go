package fleet

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
)

// startLate is a bench whose provider shows a box only some time after its create.
func startLate(t *testing.T, settle time.Duration) *bench {
	t.Helper()
	provider := newFake()
	provider.late = true
	b := start(t, func(c *Config) { c.Pools[0].Provider, c.Timing.Settle = provider, settle })
	b.provider.health.Close()
	b.provider = provider
	t.Cleanup(provider.health.Close)
	return b
}

func TestABoxThatIsSeenLateIsAdopted(t *testing.T) {
	b := startLate(t, 30*time.Second)
	var shown chan struct{}
	b.provider.with(func(p *fake) {
		shown = make(chan struct{})
		p.before = func(_ context.Context, spec adapters.Spec) error {
			time.AfterFunc(60*time.Millisecond, func() { _, _ = p.put(spec); close(shown) })
			return adapters.Errorf(adapters.KindUnknownOutcome, "the connection broke")
		}
	})
	sb := b.create(request())
	<-shown
	require.NotNil(t, b.provider.box(sb.BoxID))
	require.Equal(t, 1, b.provider.count())
}

func TestABoxThatIsMissingForTheWholeTimeIsAbsent(t *testing.T) {
	b := startLate(t, 200*time.Millisecond)
	p := b.fleet.pools.get("one")
	began := time.Now()
	require.NoError(t, b.fleet.absent(t.Context(), p, "box", "attempt"))
	require.GreaterOrEqual(t, time.Since(began), b.fleet.cfg.Timing.Settle)
}

func TestAnAnswerThatFailedIsNoProof(t *testing.T) {
	b := startLate(t, 200*time.Millisecond)
	b.provider.with(func(p *fake) { p.getErr, p.getsFail = adapters.Errorf(adapters.KindUnavailable, "away"), 1 })
	err := b.fleet.absent(t.Context(), b.fleet.pools.get("one"), "box", "attempt")
	require.ErrorIs(t, err, errUndecided)
}

func TestAHalfDoneCreateThatIsSeenLateIsRemoved(t *testing.T) {
	b := startLate(t, 30*time.Second) // it is over as soon as the box is seen
	sb := b.create(request())
	spec := b.provider.box(sb.BoxID).spec
	b.cut(sb.ID, store.StateCreating)
	require.NoError(t, b.provider.Destroy(t.Context(), sb.BoxID))
	time.AfterFunc(60*time.Millisecond, func() { _, _ = b.provider.put(spec) })
	m := b.fleet.finishLater(sb)
	<-m.done
	require.Zero(t, b.provider.count())
	b.gone(sb.ID)
}
