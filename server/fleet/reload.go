package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/translate/placement"
)

// Reload puts another set of pools and another ranking in place, all of it or nothing. A pool of the same name stays
// what it is, with the sandboxes that it has, its breaker and its figures; only its terms change, and what kept it
// from being tried until a reload is forgotten. Its Provider must be the same value. A pool that still has sandboxes
// cannot be removed: it can be drained.
func (f *Fleet) Reload(ctx context.Context, set []Pool, ranking placement.Settings) error {
	f.reloading.Lock()
	defer f.reloading.Unlock()
	before := f.pools.all()
	next, gone, err := f.arrange(set)
	if err != nil {
		return err
	}
	// A create binds its intent to a pool first and looks at the mark then; here the mark is set first. So either
	// the create turns away, or its intent is seen.
	for _, p := range gone {
		p.closing.Store(true)
	}
	if err := f.empty(ctx, gone); err != nil {
		for _, p := range gone {
			p.closing.Store(false)
		}
		return err
	}
	f.ranking.Store(&ranking)
	for i, p := range next {
		if slices.Contains(before, p) {
			p.terms.Store(newTerms(set[i], f.cfg.Timing.Create))
			p.health.heal()
			if p.stock != nil {
				p.stock.want(set[i].Warm)
			}
		}
	}
	f.pools.replace(next)
	for _, p := range next {
		switch {
		case !slices.Contains(before, p):
			f.carryAlso(p)
		case p.stock != nil:
			p.stock.nudge() // a pool that drains keeps none, another may keep more or fewer
		}
	}
	for _, p := range gone {
		f.emptyStock(ctx, p)
		close(p.removed)
	}
	return nil
}

// emptyStock destroys what a pool has made ahead, before it is left alone for ever.
func (f *Fleet) emptyStock(ctx context.Context, p *pool) {
	if p.stock == nil {
		return
	}
	p.stock.none()
	for f.giveWay(ctx, p) {
	}
}

// arrange makes the list of pools, in which those that are there already stay, and of those that are not in it any
// more.
func (f *Fleet) arrange(set []Pool) (next, gone []*pool, _ error) {
	if len(set) == 0 {
		return nil, nil, errors.New("fleet: at least one pool is needed")
	}
	named := map[string]bool{}
	for _, one := range set {
		if named[one.Name] {
			return nil, nil, fmt.Errorf("fleet: two pools are named %q", one.Name)
		}
		named[one.Name] = true
		p := f.pools.get(one.Name)
		switch {
		case p == nil:
			p = newPool(one, f.cfg.Timing, f.noteBreaker(one.Name), f.noteDrift(one.Name))
		case p.given != one.Provider:
			return nil, nil, fmt.Errorf("pool %s cannot become another account: give the new one a name of its own", one.Name)
		}
		next = append(next, p)
	}
	for _, p := range f.pools.all() {
		if !named[p.name] {
			gone = append(gone, p)
		}
	}
	return next, gone, nil
}

// noteBreaker logs the states of a pool's breaker.
func (f *Fleet) noteBreaker(name string) func(from, to placement.Breaker) {
	return func(from, to placement.Breaker) {
		f.log.Warn("a breaker has changed", "pool", name, "from", from, "to", to)
	}
}

// noteDrift logs that a capability of a pool came into doubt, and that it is not any more.
func (f *Fleet) noteDrift(name string) func(adapters.Drift) {
	return func(d adapters.Drift) {
		if d.Drifted {
			f.log.Warn("a provider's answer is not understood", "pool", name, "capability", d.Feature, "operation", d.Operation, "reason", d.Reason)
			return
		}
		f.log.Info("a provider's answers are understood again", "pool", name, "capability", d.Feature, "operation", d.Operation, "times", d.Times)
	}
}

// empty returns an error that names the pools which still have sandboxes, creates in progress included.
func (f *Fleet) empty(ctx context.Context, gone []*pool) error {
	var busy []string
	for _, p := range gone {
		sandboxes, err := f.store.Sandboxes.CountIn(ctx, p.name)
		if err != nil {
			return storeError("", err)
		}
		if sandboxes > 0 {
			busy = append(busy, fmt.Sprintf("%s (%d)", p.name, sandboxes))
		}
	}
	if len(busy) == 0 {
		return nil
	}
	return adapters.Errorf(adapters.KindPrecondition, "these pools still have sandboxes and cannot be removed: %s. Set draining: true and "+
		"load the configuration again; remove them when they are empty", strings.Join(busy, ", "))
}
