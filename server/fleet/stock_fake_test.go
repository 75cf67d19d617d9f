package fleet

import (
	"context"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// stocking is the fake with the power to make boxes ahead. most bounds its boxes, those in stock included.
type stocking struct {
	*fake
	version  string
	most     int
	stocks   int
	claims   int
	stockErr error
	// onClaim runs before a claim, and its error is the claim's; afterClaim answers once it is done.
	onClaim, afterClaim func(ctx context.Context, spec adapters.Spec) error
	onStock             func()
}

func (p *stocking) Resolve(ctx context.Context, name string) (adapters.Template, error) {
	template, err := p.fake.Resolve(ctx, name)
	p.mu.Lock()
	defer p.mu.Unlock()
	template.Version = p.version
	return template, err
}

// full is to be called with the lock held.
func (p *stocking) full() error {
	if p.most > 0 && len(p.boxes) >= p.most {
		return adapters.Errorf(adapters.KindCapacity, "there are %d boxes", len(p.boxes))
	}
	return nil
}

func (p *stocking) Create(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	p.mu.Lock()
	err := p.full()
	p.mu.Unlock()
	if err != nil {
		return adapters.Box{}, err
	}
	return p.fake.Create(ctx, spec)
}

func (p *stocking) Stock(_ context.Context, spec adapters.Spec) (adapters.Box, error) {
	p.mu.Lock()
	p.stocks++
	err, onStock := p.stockErr, p.onStock
	if err == nil {
		err = p.full()
	}
	p.mu.Unlock()
	if onStock != nil {
		onStock()
	}
	if err != nil {
		return adapters.Box{}, err
	}
	return p.put(spec)
}

func (p *stocking) Claim(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	p.mu.Lock()
	p.claims++
	onClaim, afterClaim := p.onClaim, p.afterClaim
	p.mu.Unlock()
	if onClaim != nil {
		if err := onClaim(ctx, spec); err != nil {
			return adapters.Box{}, err
		}
	}
	box, err := p.claim(spec)
	if err == nil && afterClaim != nil {
		err = afterClaim(ctx, spec)
	}
	return box, err
}

// claim renames one box, in one step.
func (p *stocking) claim(spec adapters.Spec) (adapters.Box, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, box := range p.boxes {
		if box.SandboxID != "" || !box.Alive || box.Deployment != spec.Deployment || fit(box.spec) != fit(spec) {
			continue
		}
		delete(p.boxes, id)
		box.ID, box.Attempt, box.SandboxID, box.spec, box.deadline = spec.BoxID, spec.Attempt, spec.Envd.SandboxID, spec, spec.Envd.Deadline
		p.boxes[spec.BoxID] = box
		return box.Box, nil
	}
	return adapters.Box{}, adapters.Errorf(adapters.KindNotFound, "none fits")
}

func (p *stocking) Unstock(ctx context.Context, id string) error {
	p.mu.Lock()
	box := p.boxes[id]
	ahead := box != nil && box.SandboxID == ""
	p.mu.Unlock()
	if !ahead {
		return adapters.Errorf(adapters.KindNotFound, "none of this id")
	}
	return p.Destroy(ctx, id)
}

// inStock counts the live boxes that nobody claimed.
func (p *stocking) inStock() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	count := 0
	for _, box := range p.boxes {
		if box.SandboxID == "" && box.Alive {
			count++
		}
	}
	return count
}

// age makes every box in stock older, with this end.
func (p *stocking) age(by time.Duration, end time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, box := range p.boxes {
		box.CreatedAt, box.deadline = box.CreatedAt.Add(-by), end
	}
}
