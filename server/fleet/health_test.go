package fleet

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/translate/placement"
)

// unnoted is for tests that do not look at the changes of a breaker.
func unnoted(placement.Breaker, placement.Breaker) {}

// tryTimes makes n attempts that end with one outcome, and counts those that were let through.
func (h *health) tryTimes(t *testing.T, n int, outcome error) (through int) {
	t.Helper()
	for range n {
		done, err := h.admit(time.Now(), true)
		if err != nil {
			require.ErrorIs(t, err, errNotTried)
			continue
		}
		through++
		done(outcome)
	}
	return through
}

func TestBreakerOpensAndProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes []placement.Breaker
		h := newHealth("a", func(_, to placement.Breaker) { changes = append(changes, to) })
		away := adapters.Errorf(adapters.KindUnavailable, "away")
		require.Equal(t, breakerRow, h.tryTimes(t, 100, away), "what comes after it opened is turned away")
		require.Equal(t, placement.BreakerOpen, h.live(time.Now()).Breaker)

		time.Sleep(breakerOpen + time.Second)
		require.Equal(t, placement.BreakerHalfOpen, h.live(time.Now()).Breaker)
		require.Equal(t, 1, h.tryTimes(t, 50, away), "one probe that fails opens it again")

		time.Sleep(breakerOpen + time.Second)
		first, err := h.admit(time.Now(), true)
		require.NoError(t, err)
		second, err := h.admit(time.Now(), true)
		require.NoError(t, err)
		require.Zero(t, h.tryTimes(t, 50, nil), "no more probes than that at a time")
		first(nil)
		second(nil)
		require.Equal(t, placement.BreakerClosed, h.live(time.Now()).Breaker)
		require.Equal(t, 50, h.tryTimes(t, 50, nil))
		require.Equal(t, []placement.Breaker{placement.BreakerOpen, placement.BreakerHalfOpen, placement.BreakerOpen,
			placement.BreakerHalfOpen, placement.BreakerClosed}, changes)
	})
}

func TestBreakerOpensAtAShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHealth("a", unnoted)
		full := adapters.Errorf(adapters.KindCapacity, "full")
		through := 0
		for range 50 {
			through += h.tryTimes(t, 1, nil) + h.tryTimes(t, 1, full)
		}
		require.Equal(t, breakerCreates, through, "every second one fails, never five in a row")
		require.InDelta(t, 0.5, h.live(time.Now()).SuccessRate, 0.01)
	})
}

func TestWhatTheBreakerLearns(t *testing.T) {
	for kind, opens := range map[adapters.Kind]bool{
		adapters.KindInvalid: false, adapters.KindNotFound: false, adapters.KindExists: false, adapters.KindPrecondition: false,
		adapters.KindCapacity: true, adapters.KindTeamLimit: false, adapters.KindUnavailable: true, adapters.KindUnsupported: false,
		adapters.KindDeclined: false, adapters.KindUnknownOutcome: true, adapters.KindInternal: true, placement.FailedPostCheck: true,
	} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHealth("a", unnoted)
				h.tryTimes(t, 100, adapters.Errorf(kind, "no"))
				require.Equal(t, opens, h.isOpen())
			})
		})
	}
}

func TestWhatWasNotTriedSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHealth("a", unnoted)
		require.Equal(t, 100, h.tryTimes(t, 100, notTried(adapters.KindUnavailable, "the caller left")))
		require.Zero(t, h.live(time.Now()).Creates)
		require.Equal(t, map[string]int64{"not_tried": 100}, h.counts())
	})
}

func TestPoolsRest(t *testing.T) {
	cases := []struct {
		failure *adapters.Error
		rests   time.Duration
	}{
		{&adapters.Error{Kind: adapters.KindRateLimited, RetryAfter: 30 * time.Second}, 30 * time.Second},
		{&adapters.Error{Kind: adapters.KindRateLimited}, 5 * time.Second},
		{&adapters.Error{Kind: adapters.KindQuota}, time.Minute},
	}
	for _, c := range cases {
		t.Run(string(c.failure.Kind)+c.rests.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHealth("a", unnoted)
				require.Equal(t, 1, h.tryTimes(t, 10, c.failure))
				_, err := h.admit(time.Now(), true)
				requireKind(t, c.failure.Kind, err)
				require.Equal(t, c.rests, retryAfter(err))
				live := h.live(time.Now())
				require.Equal(t, c.failure.Kind, live.RestKind)
				time.Sleep(c.rests + time.Millisecond)
				require.Zero(t, h.live(time.Now()).RestUntil)
				require.Equal(t, 10, h.tryTimes(t, 10, nil))
			})
		})
	}
}

func TestRefusedCredentialsWaitForAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHealth("a", unnoted)
		require.Equal(t, 1, h.tryTimes(t, 10, adapters.Errorf(adapters.KindCredentials, "401")))
		time.Sleep(24 * time.Hour)
		require.Zero(t, h.tryTimes(t, 10, nil), "time does not renew a key")
		require.Contains(t, h.live(time.Now()).Unhealthy, "credentials")
		h.heal()
		require.Equal(t, 10, h.tryTimes(t, 10, nil))
	})
}

func TestOneBreakerSteersNowhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHealth("a", unnoted)
		for range 50 {
			done, err := h.admit(time.Now(), false)
			require.NoError(t, err, "the only pool is always tried")
			done(adapters.Errorf(adapters.KindCapacity, "full"))
		}
		require.True(t, h.isOpen(), "and it is shown all the same")
	})
}

func TestFiguresAreOfLately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHealth("a", unnoted)
		for _, took := range []time.Duration{time.Second, 2 * time.Second, 30 * time.Second} {
			done, err := h.admit(time.Now(), true)
			require.NoError(t, err)
			require.Equal(t, 1, h.live(time.Now()).Starting)
			time.Sleep(took)
			done(nil)
		}
		live := h.live(time.Now())
		require.Equal(t, placement.Milliseconds(2*time.Second), live.StartP50)
		require.InDelta(t, 1, live.SuccessRate, 0)
		time.Sleep(outcomesLife + time.Second)
		require.Zero(t, h.live(time.Now()).Creates)
	})
}
