package fleet

import (
	"context"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// drainTime bounds the emptying of all stocks at the stop.
const drainTime = 20 * time.Second

// fillLoop keeps a pool's stock full, once what was left before is in order, until the fleet stops, the pool is
// removed or the work ends.
func (f *Fleet) fillLoop(work context.Context, p *pool) {
	ctx, cancel := context.WithCancel(work)
	defer cancel()
	go func() {
		defer cancel()
		select {
		case <-f.stopped:
		case <-p.removed:
		case <-ctx.Done():
		}
	}()
	select {
	case <-f.ready:
	case <-ctx.Done():
		return
	}
	tick := time.NewTicker(f.cfg.Timing.Reconcile)
	defer tick.Stop()
	for {
		f.fill(ctx, p)
		select {
		case <-ctx.Done():
			return
		case <-p.stock.wake:
			if !sleep(ctx, f.cfg.Timing.Refill) {
				return
			}
		case <-tick.C:
		}
	}
}

// fill makes what is missing, one box after the other. What fails is tried again at the next occasion.
func (f *Fleet) fill(ctx context.Context, p *pool) {
	for {
		made, err := f.fillOne(ctx, p)
		switch kind := adapters.KindOf(err); {
		case err == nil && made:
			continue
		case err == nil || ctx.Err() != nil:
		case kind == adapters.KindUnsupported:
			f.log.Info("no boxes are made ahead in this pool", "pool", p.name, "why", err)
			p.stock.none()
		case kind == adapters.KindCapacity: // the room is for creates
		default:
			f.log.Warn("no box could be made ahead: it is tried again", "pool", p.name, "err", err)
		}
		return
	}
}

// fillOne makes one box if one is missing and no create is in progress: the last of those wakes the loop again.
func (f *Fleet) fillOne(ctx context.Context, p *pool) (made bool, _ error) {
	done, err := p.stock.change(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	missing, err := f.survey(ctx, p)
	if err != nil || missing == nil || p.stock.creates.Load() > 0 {
		return false, err
	}
	spec := f.stockedSpec(*missing)
	bounded, cancel := context.WithTimeout(ctx, f.cfg.Timing.Create)
	defer cancel()
	if _, err := p.stock.Stock(bounded, spec); err != nil {
		return false, err // should there be one all the same, the next survey finds it
	}
	p.stock.added(spec.Attempt)
	return true, nil
}

// survey goes through what is in stock: what serves no create any more is destroyed, the rest is kept longer. It
// returns a template of which a box is missing; nil: none is.
func (f *Fleet) survey(ctx context.Context, p *pool) (missing *adapters.Template, _ error) {
	wanted, templates, err := f.wanted(ctx, p)
	if err != nil {
		return nil, err
	}
	boxes, err := p.List(ctx, f.cfg.Secrets.Deployment())
	if err != nil {
		return nil, err
	}
	ready := make(map[string]int, len(wanted))
	keep := time.Since(p.stock.extended) > stockLife/4
	for _, box := range boxes {
		switch {
		case box.SandboxID != "":
		case !box.Alive || ready[box.Attempt] == wanted[box.Attempt]:
			f.unstock(ctx, p, box.ID)
		default:
			ready[box.Attempt]++
			if keep {
				f.keepStocked(ctx, p, box.ID)
			}
		}
	}
	if keep {
		p.stock.extended = time.Now()
	}
	for fit, template := range templates {
		if ready[fit] < wanted[fit] {
			missing = &template
		}
	}
	p.stock.know(wanted, ready) // from here on both are the stock's
	return missing, nil
}

// wanted returns how many boxes of each fit there should be, and the templates of the fits. A template that is
// not there has none.
func (f *Fleet) wanted(ctx context.Context, p *pool) (map[string]int, map[string]adapters.Template, error) {
	wanted, templates := map[string]int{}, map[string]adapters.Template{}
	if p.terms.Load().facts.Draining {
		return wanted, templates, nil
	}
	for name, boxes := range p.stock.kept() {
		template, err := p.Resolve(ctx, name)
		if err != nil && adapters.KindOf(err) == adapters.KindNotFound {
			f.log.Debug("a template of which boxes should be made ahead is not there", "pool", p.name, "template", name)
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		fit := f.stockedSpec(template).Attempt
		wanted[fit] += boxes // two names may mean one template
		templates[fit] = template
	}
	return wanted, templates, nil
}

// keepStocked moves the end of a box in stock.
func (f *Fleet) keepStocked(ctx context.Context, p *pool, boxID string) {
	if err := p.extend(ctx, boxID, now().Add(stockLife)); err != nil && adapters.KindOf(err) != adapters.KindNotFound {
		f.log.Warn("the end of a box in stock could not be moved: it is tried again", "pool", p.name, "box", boxID, "err", err)
	}
}

// unstock destroys a box in stock, and reports whether it did: it may have been claimed meanwhile.
func (f *Fleet) unstock(ctx context.Context, p *pool, boxID string) bool {
	err := p.unstock(ctx, boxID)
	if err != nil && adapters.KindOf(err) != adapters.KindNotFound {
		f.log.Warn("a box in stock could not be destroyed: it is tried again", "pool", p.name, "box", boxID, "err", err)
	}
	return err == nil
}

// drainStocks destroys what nobody claimed, at the stop: nobody would miss it, and it must not be left to run for
// nothing.
func (f *Fleet) drainStocks() {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	for _, p := range f.pools.all() {
		for p.stock != nil && f.giveWay(ctx, p) {
		}
	}
}
