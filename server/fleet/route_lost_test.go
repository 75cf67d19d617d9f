package fleet

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
)

func TestLostAnswersWithFailover(t *testing.T) {
	creates := 1000
	if testing.Short() {
		creates = 100
	}
	r := startPools(t, nil, "a", "b")
	var turn atomic.Int64
	for _, f := range r.fakes {
		f.with(func(f *fake) {
			f.before = func(context.Context, adapters.Spec) error {
				if turn.Add(1)%3 == 0 {
					return adapters.Errorf(adapters.KindUnknownOutcome, "lost, and nothing was made")
				}
				return nil
			}
			f.after = func(_ context.Context, spec adapters.Spec) error {
				if n := r.copies(spec.BoxID); n != 1 {
					t.Errorf("%d boxes of one id", n)
				}
				if turn.Load()%2 == 0 {
					return adapters.Errorf(adapters.KindUnknownOutcome, "made, and the answer was lost")
				}
				return nil
			}
		})
	}
	made := map[string]bool{}
	for range creates {
		sb, err := r.fleet.Create(t.Context(), request())
		if err != nil {
			// Capacity: the breaker of a pool opened, which is up to the order in which pools were asked.
			require.Contains(t, []adapters.Kind{adapters.KindUnavailable, adapters.KindCapacity}, adapters.KindOf(err), err)
			continue
		}
		require.Equal(t, 1, r.copies(sb.ID))
		made[sb.ID] = true
	}
	require.Equal(t, len(made), r.live(), "none left over")
	require.Greater(t, len(made), creates/2)
}

// copies counts the boxes of one id.
func (r *routed) copies(id string) int {
	n := 0
	for _, f := range r.fakes {
		if f.box(id) != nil {
			n++
		}
	}
	return n
}

func TestUndecidedIsNotTriedElsewhere(t *testing.T) {
	r := startPools(t, nil, "a", "b")
	r.fakes["a"].with(func(f *fake) {
		f.after = failing(adapters.KindUnknownOutcome)
		f.getErr = adapters.Errorf(adapters.KindUnavailable, "away")
	})
	_, err := r.fleet.Create(t.Context(), request())
	requireKind(t, adapters.KindUnknownOutcome, err)
	require.Zero(t, r.fakes["b"].creates, "there may be one already")
	r.fakes["a"].with(func(f *fake) { f.getErr = nil })
	r.fleet.Reconcile(t.Context())
	require.Eventually(t, func() bool { return r.live() == 0 }, 30*time.Second, time.Millisecond)
}
