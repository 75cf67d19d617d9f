package fleet

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/translate/placement"
)

// When a breaker opens and what it lets through afterwards. It looks at the creates of the last minute, so that a
// pool is judged by what it does now.
const (
	breakerWindow  = time.Minute
	breakerBucket  = 10 * time.Second
	breakerRow     = 5  // failures in a row that open it
	breakerCreates = 10 // creates from which on a share of a half opens it
	breakerOpen    = 10 * time.Second
	breakerProbes  = 2 // probes at a time while it is half open; as many successes close it
)

// The figures of a pool are those of its last creates, at most so many and so old.
const (
	outcomesKept = 64
	outcomesLife = 10 * time.Minute
)

// errNeutral tells the breaker that an outcome says nothing about the pool.
var errNeutral = errors.New("it says nothing about the pool")

// health is what the creates of one pool have shown. It is never asked for by pings: what counts is what happened.
type health struct {
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]

	mu        sync.Mutex
	restUntil time.Time
	restKind  adapters.Kind
	// breakerUntil is when an open breaker lets a create through again.
	breakerUntil time.Time
	unhealthy    string    // until the configuration is loaded again; empty: healthy
	outcomes     []outcome // the last ones, oldest first
	attempts     map[string]int64
	starting     int
}

// outcome is one create that said something about the pool.
type outcome struct {
	at   time.Time
	took time.Duration
	ok   bool
}

// newHealth makes the health of a pool of which nothing is known. changed is told of each state of the breaker.
func newHealth(name string, changed func(from, to placement.Breaker)) *health {
	h := &health{attempts: map[string]int64{}}
	h.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name: name, MaxRequests: breakerProbes, Interval: breakerWindow, BucketPeriod: breakerBucket, Timeout: breakerOpen,
		ReadyToTrip: tripped,
		IsExcluded:  func(err error) bool { return errors.Is(err, errNeutral) },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			h.opened(to == gobreaker.StateOpen)
			changed(breakerOf(from), breakerOf(to))
		},
	})
	return h
}

// opened notes until when the breaker is open. Nobody may ask the breaker anything while holding the lock.
func (h *health) opened(open bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.breakerUntil = time.Time{}
	if open {
		h.breakerUntil = time.Now().Add(breakerOpen)
	}
}

// openUntil says in words until when the breaker is open.
func (h *health) openUntil() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return "its breaker is " + placement.OpenUntil(h.breakerUntil)
}

func tripped(c gobreaker.Counts) bool {
	judged := c.TotalSuccesses + c.TotalFailures
	return c.ConsecutiveFailures >= breakerRow || judged >= breakerCreates && 2*c.TotalFailures >= judged
}

func breakerOf(state gobreaker.State) placement.Breaker {
	switch state {
	case gobreaker.StateOpen:
		return placement.BreakerOpen
	case gobreaker.StateHalfOpen:
		return placement.BreakerHalfOpen
	}
	return placement.BreakerClosed
}

// admit asks for one attempt at this moment. enforced says that the breaker may refuse: it steers creates to other
// pools, and where there is no other it would only make an outage longer. The function that it returns must be
// called with the attempt's outcome, once.
func (h *health) admit(at time.Time, enforced bool) (done func(error), _ error) {
	if err := h.resting(at); err != nil {
		return nil, err
	}
	report, err := h.breaker.Allow()
	switch {
	case err == nil:
	case enforced:
		return nil, &adapters.Error{Kind: adapters.KindCapacity, Message: h.openUntil(), Err: errNotTried}
	default:
		report = func(error) {}
	}
	h.mu.Lock()
	h.starting++
	h.mu.Unlock()
	return func(failure error) { h.learn(at, failure, report) }, nil
}

// isOpen reports whether the breaker lets nothing through now.
func (h *health) isOpen() bool { return h.breaker.State() == gobreaker.StateOpen }

// resting returns the error for a pool that is left alone at this moment, or nil.
func (h *health) resting(at time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.unhealthy != "":
		return &adapters.Error{Kind: adapters.KindCredentials, Message: h.unhealthy, Err: errNotTried}
	case h.restUntil.After(at):
		return &adapters.Error{Kind: h.restKind, Message: "it is left alone for a while", RetryAfter: h.restUntil.Sub(at), Err: errNotTried}
	}
	return nil
}

// learn draws the consequences of an attempt that began at a time.
func (h *health) learn(began time.Time, failure error, report func(error)) {
	end := time.Now()
	follows := placement.Consequence{}
	kind := adapters.KindOf(failure)
	if failure != nil {
		follows = placement.After(kind)
	}
	if errors.Is(failure, errNotTried) {
		follows = placement.Consequence{Mark: placement.MarkNone}
		kind = "not_tried"
	}
	switch {
	case failure == nil:
		report(nil)
	case follows.Mark == placement.MarkNone:
		report(errNeutral)
	default:
		report(failure)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.starting--
	if failure == nil {
		h.attempts["ok"]++
	} else {
		h.attempts[string(kind)]++
	}
	if follows.Mark == placement.MarkOpen {
		h.unhealthy = "the provider refuses the credentials: renew them and load the configuration again"
	}
	if rest := follows.Resting(retryAfter(failure)); rest > 0 {
		h.restLocked(end.Add(rest), kind)
	}
	if failure == nil || follows.Mark == placement.MarkFailure {
		h.outcomes = append(h.outcomes, outcome{at: end, took: end.Sub(began), ok: failure == nil})
		h.outcomes = h.outcomes[max(0, len(h.outcomes)-outcomesKept):]
	}
}

// rest leaves the pool alone until a moment, for an error of this kind.
func (h *health) rest(until time.Time, kind adapters.Kind) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.restLocked(until, kind)
}

func (h *health) restLocked(until time.Time, kind adapters.Kind) {
	if until.After(h.restUntil) {
		h.restUntil, h.restKind = until, kind
	}
}

// heal forgets why no create is tried, because the configuration was loaded again.
func (h *health) heal() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unhealthy = ""
}

// sicken lets no create through until the configuration is loaded again.
func (h *health) sicken(why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unhealthy = why
}

// live returns the figures at a moment.
func (h *health) live(at time.Time) placement.Live {
	live := placement.Live{Breaker: breakerOf(h.breaker.State())}
	h.mu.Lock()
	defer h.mu.Unlock()
	live.RestUntil, live.RestKind, live.Unhealthy, live.Starting = h.restUntil, h.restKind, h.unhealthy, h.starting
	if live.Breaker == placement.BreakerOpen {
		live.BreakerUntil = h.breakerUntil
	}
	if !h.restUntil.After(at) {
		live.RestUntil, live.RestKind = time.Time{}, ""
	}
	var took []time.Duration
	for _, o := range h.outcomes {
		if at.Sub(o.at) > outcomesLife {
			continue
		}
		live.Creates++
		if o.ok {
			took = append(took, o.took)
		}
	}
	if live.Creates > 0 {
		live.SuccessRate = float64(len(took)) / float64(live.Creates)
	}
	if len(took) > 0 {
		slices.Sort(took)
		live.StartP50 = placement.Milliseconds(took[len(took)/2])
	}
	return live
}
