package fleet

import (
	"context"
	"errors"

	"github.com/isthmus/isthmus/adapters"
)

// obtain gets the box of an attempt from stock, or makes it. Where the pool is full, boxes in stock give way. An
// error other than errUndecided means that nothing of the attempt is left.
func (f *Fleet) obtain(ctx context.Context, m *making, spec adapters.Spec, p *pool) error {
	if p.stock == nil {
		return f.attempt(ctx, m, spec, p)
	}
	defer p.stock.begin()()
	if claimed, err := f.claimStocked(ctx, p, spec); claimed || err != nil {
		return err
	}
	for {
		err := f.attempt(ctx, m, spec, p)
		full := adapters.KindOf(err) == adapters.KindCapacity && !errors.Is(err, errNotTried) // room helps only a provider that was asked
		if err == nil || !full || !f.giveWay(ctx, p) {
			return err
		}
	}
}

// claimStocked makes a box in stock the box of the intent, which names it before. Without an error and a claim,
// nothing of the attempt is anywhere: it may be made.
func (f *Fleet) claimStocked(ctx context.Context, p *pool, spec adapters.Spec) (claimed bool, _ error) {
	if !p.stock.take(fit(spec)) {
		return false, nil
	}
	bounded, cancel := context.WithTimeout(ctx, f.cfg.Timing.Settle)
	_, err := p.stock.Claim(bounded, spec)
	cancel()
	if err == nil || leavesNothing(err) {
		p.stock.took(err == nil)
		return err == nil, nil
	}
	f.log.Warn("claim: looking up what became of a box", "pool", p.name, "box", spec.BoxID, "err", err)
	claimed = f.lookUp(ctx, p, spec.BoxID, spec.Attempt) == nil
	p.stock.took(claimed)
	if claimed {
		return true, nil
	}
	return false, f.absent(ctx, p, spec.BoxID, spec.Attempt)
}

// giveWay destroys one box in stock, and reports whether there was one.
func (f *Fleet) giveWay(ctx context.Context, p *pool) bool {
	done, err := p.stock.change(ctx) // one that is being made is waited for
	if err != nil {
		return false
	}
	defer done()
	boxes, err := p.List(ctx, f.cfg.Secrets.Deployment())
	if err != nil {
		f.log.Warn("the boxes in stock cannot be listed", "pool", p.name, "err", err)
		return false
	}
	for _, box := range boxes {
		if box.SandboxID == "" && f.unstock(ctx, p, box.ID) {
			return true
		}
	}
	return false
}
