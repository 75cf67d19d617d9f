package fault

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// Provider is a provider that breaks by a plan. It is safe for concurrent use.
type Provider struct {
	inner  adapters.Provider
	powers adapters.Powers
	dice   *dice

	mu     sync.Mutex
	deaths map[string]*time.Timer // boxes that are going to die
	dying  sync.WaitGroup
	closed bool
}

var _ adapters.Wrapper = (*Provider)(nil)

// New wraps a provider. The error says what is wrong with the plan.
func New(inner adapters.Provider, plan Plan) (*Provider, error) {
	if err := plan.Check(); err != nil {
		return nil, err
	}
	return &Provider{inner: inner, powers: adapters.PowersOf(inner), dice: newDice(plan), deaths: map[string]*time.Timer{}}, nil
}

// Change puts another plan in place: its rules, dice and counters begin anew.
func (p *Provider) Change(plan Plan) error {
	if err := plan.Check(); err != nil {
		return err
	}
	p.dice.change(plan)
	return nil
}

// Seen counts the calls, "create", and what struck them, "create/capacity".
func (p *Provider) Seen() map[string]int { return p.dice.seen() }

// Describe passes the call on.
func (p *Provider) Describe() adapters.Description { return p.inner.Describe() }

// Resolve passes the call on, or fails by the plan.
func (p *Provider) Resolve(ctx context.Context, name string) (adapters.Template, error) {
	return through(ctx, p, Resolve, func() (adapters.Template, error) { return p.inner.Resolve(ctx, name) })
}

// Create passes the call on, or fails by the plan.
func (p *Provider) Create(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	rule := p.dice.throw(Create)
	if rule.Fault == WrongSize {
		spec.Resources = half(spec.Resources)
	}
	box, err := struck(ctx, rule, func() (adapters.Box, error) { return p.inner.Create(ctx, spec) })
	if rule.Fault == Dies && err == nil {
		p.dieLater(box.ID, rule.Delay)
	}
	return box, err
}

func half(r adapters.Resources) adapters.Resources {
	return adapters.Resources{CPU: max(1, r.CPU/2), MemoryMB: max(1, r.MemoryMB/2), DiskMB: max(1, r.DiskMB/2)}
}

// Get passes the call on, or fails by the plan.
func (p *Provider) Get(ctx context.Context, boxID string) (adapters.Box, error) {
	return through(ctx, p, Get, func() (adapters.Box, error) { return p.inner.Get(ctx, boxID) })
}

// List passes the call on, or fails by the plan.
func (p *Provider) List(ctx context.Context, deployment string) ([]adapters.Box, error) {
	return through(ctx, p, List, func() ([]adapters.Box, error) { return p.inner.List(ctx, deployment) })
}

// Destroy passes the call on, or fails by the plan.
func (p *Provider) Destroy(ctx context.Context, boxID string) error {
	return only(ctx, p, Destroy, func() error { return p.inner.Destroy(ctx, boxID) })
}

// Reach passes the call on, or fails by the plan; connections that the provider's dialer makes do too.
func (p *Provider) Reach(ctx context.Context, boxID string) (adapters.Endpoint, error) {
	endpoint, err := through(ctx, p, Reach, func() (adapters.Endpoint, error) { return p.inner.Reach(ctx, boxID) })
	if dial := endpoint.Dial; dial != nil {
		endpoint.Dial = func(ctx context.Context) (net.Conn, error) {
			return through(ctx, p, Dial, func() (net.Conn, error) { return dial(ctx) })
		}
	}
	return endpoint, err
}

// Run passes the call on. When it returns, no box dies any more.
func (p *Provider) Run(ctx context.Context) error {
	err := p.inner.Run(ctx)
	p.mu.Lock()
	p.closed = true
	for id, timer := range p.deaths {
		if timer.Stop() {
			p.dying.Done()
		}
		delete(p.deaths, id)
	}
	p.mu.Unlock()
	p.dying.Wait()
	return err
}

// dieTime bounds the end of one box.
const dieTime = time.Minute

// dieLater ends a box from behind.
func (p *Provider) dieLater(boxID string, after time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.dying.Add(1)
	p.deaths[boxID] = time.AfterFunc(after, func() {
		defer p.dying.Done()
		ctx, cancel := context.WithTimeout(context.Background(), dieTime)
		defer cancel()
		_ = p.inner.Destroy(ctx, boxID) // A box that will not die is no fault of the one under test.
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.deaths, boxID)
	})
}
