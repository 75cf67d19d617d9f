package fleet

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/translate/placement"
)

// errNotTried marks an attempt that came to nothing before the provider was called.
var errNotTried = errors.New("the provider was not called")

// pool is a provider with the optional powers that it has; those that it lacks are nil.
type pool struct {
	*adapters.Watched
	// given is the provider inside.
	given    adapters.Provider
	name     string
	extender adapters.Extender
	meter    adapters.Meter
	journal  adapters.Journal
	watcher  adapters.Watcher
	explain  adapters.Explainer
	native   adapters.Native // its boxes speak envd themselves

	pauser      adapters.Pauser
	snapshotter adapters.Snapshotter
	networker   adapters.Networker
	// seenAtOnce says that Get finds a box as soon as it is made.
	seenAtOnce bool
	stock      *stock // nil: none can be had
	health     *health
	// bound is the longest time of one call that has no bound of its own.
	bound time.Duration
	// changeBound is that of a pause, a resume and a snapshot.
	changeBound time.Duration
	// destroying bounds how many boxes are destroyed at once.
	destroying chan struct{}
	// terms are what a reload may change.
	terms atomic.Pointer[terms]
	// alone says that no other pool takes creates: leaving this one alone would gain nothing.
	alone atomic.Bool
	// closing says that it takes nothing, because it may be about to be removed. removed is closed when it is.
	closing atomic.Bool
	removed chan struct{}
}

// terms are the facts of a pool that may change while it serves. They are read-only.
type terms struct {
	facts     placement.Pool
	templates map[string]string
	within    time.Duration // the longest time of one attempt
	creating  chan struct{} // nil: no bound
	limiter   *rate.Limiter // nil: no bound
}

// newPool finds a provider's powers, once.
func newPool(p Pool, timing Timing, changed func(from, to placement.Breaker), drifted func(adapters.Drift)) *pool {
	watched := adapters.Watch(p.Provider, drifted)
	powers := watched.Powers()
	found := &pool{
		Watched: watched, given: p.Provider, name: p.Name, removed: make(chan struct{}), health: newHealth(p.Name, changed),
		extender: powers.Extender, meter: powers.Meter, journal: powers.Journal, watcher: powers.Watcher, explain: powers.Explainer, native: powers.Native,
		pauser: powers.Pauser, snapshotter: powers.Snapshotter, networker: powers.Networker, changeBound: timing.Change,
		stock: newStock(powers, p.Warm), seenAtOnce: p.Provider.Describe().SeenAtOnce, bound: timing.Call, destroying: make(chan struct{}, 8),
	}
	found.terms.Store(newTerms(p, timing.Create))
	return found
}

func newTerms(p Pool, within time.Duration) *terms {
	t := &terms{facts: p.Facts, templates: p.Templates, within: cmp.Or(p.CreateTime, within)}
	if t.facts.Name == "" {
		t.facts = placement.FromDescription(p.Name, p.Provider.Describe(), adapters.CapabilitiesOf(p.Provider))
	}
	if p.CreatesAtOnce > 0 {
		t.creating = make(chan struct{}, p.CreatesAtOnce)
	}
	if p.CreateRate > 0 {
		t.limiter = rate.NewLimiter(rate.Limit(p.CreateRate), max(1, int(p.CreateRate)))
	}
	return t
}

// admit asks for one attempt, whose outcome the function that it returns must be told.
func (p *pool) admit() (done func(error), _ error) {
	if p.closing.Load() {
		return nil, notTried(adapters.KindUnavailable, "it is not configured any more")
	}
	done, err := p.health.admit(time.Now(), !p.alone.Load())
	limiter := p.terms.Load().limiter
	if err != nil || limiter == nil {
		return done, err
	}
	if turn := limiter.Reserve(); turn.Delay() > 0 {
		turn.Cancel()
		err := notTried(adapters.KindRateLimited, "its configured rate of creates is used up")
		err.RetryAfter = turn.Delay()
		done(err)
		return nil, err
	}
	return done, nil
}

// create makes a box when it is this one's turn, unless left is closed before. The bound on the time is for the
// making alone, not for the waiting.
func (p *pool) create(ctx context.Context, left <-chan struct{}, spec adapters.Spec) error {
	terms := p.terms.Load()
	if terms.creating != nil {
		select {
		case terms.creating <- struct{}{}:
			defer func() { <-terms.creating }()
		case <-left:
			return notTried(adapters.KindUnavailable, "the caller left while the create was waiting for its turn")
		case <-ctx.Done():
			return stopping()
		}
	}
	if p.health.isOpen() && !p.alone.Load() {
		return notTried(adapters.KindCapacity, "its breaker opened while the create was waiting for its turn")
	}
	bounded, cancel := context.WithTimeout(ctx, terms.within)
	defer cancel()
	_, err := p.Watched.Create(bounded, spec)
	return err
}

// resolve finds the pool's own template of a name, by the pool's own name for it where it has one.
func (p *pool) resolve(ctx context.Context, name string) (adapters.Template, error) {
	templates := p.terms.Load().templates
	own, named := templates[name]
	if !named {
		return p.Resolve(ctx, name)
	}
	template, err := p.Resolve(ctx, own)
	template.Name = name // clients know it by this one
	return template, err
}

func notTried(kind adapters.Kind, message string) *adapters.Error {
	return adapters.Wrap(kind, errNotTried, message)
}
