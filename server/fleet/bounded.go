package fleet

import (
	"context"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// The calls below have no bound of their own. Each gets the pool's, so that a provider which does not answer
// holds up nothing for ever.

// Get returns one box.
func (p *pool) Get(ctx context.Context, boxID string) (adapters.Box, error) {
	ctx, cancel := context.WithTimeout(ctx, p.bound)
	defer cancel()
	return p.Watched.Get(ctx, boxID)
}

// List returns the boxes of a deployment.
func (p *pool) List(ctx context.Context, deployment string) ([]adapters.Box, error) {
	ctx, cancel := context.WithTimeout(ctx, p.bound)
	defer cancel()
	return p.Watched.List(ctx, deployment)
}

// Destroy removes a box. It must not be called by many at once: see Fleet.destroy.
func (p *pool) Destroy(ctx context.Context, boxID string) error {
	ctx, cancel := context.WithTimeout(ctx, p.bound)
	defer cancel()
	return p.Watched.Destroy(ctx, boxID)
}

// Reach says how to open connections to a box.
func (p *pool) Reach(ctx context.Context, boxID string) (adapters.Endpoint, error) {
	ctx, cancel := context.WithTimeout(ctx, p.bound)
	defer cancel()
	return p.Watched.Reach(ctx, boxID)
}

// extend moves a box's own deadline. The pool must have the power.
func (p *pool) extend(ctx context.Context, boxID string, deadline time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, p.bound)
	defer cancel()
	return p.extender.Extend(ctx, boxID, deadline)
}

// inner says how to reach the envd that a box brought. The pool must have the power.
func (p *pool) inner(ctx context.Context, boxID string) (adapters.Inner, error) {
	ctx, cancel := context.WithTimeout(ctx, p.bound)
	defer cancel()
	return p.native.Native(ctx, boxID)
}

// pause stops a box. The pool must have the power.
func (p *pool) pause(ctx context.Context, boxID string, level adapters.Level) error {
	ctx, cancel := context.WithTimeout(ctx, p.changeBound)
	defer cancel()
	return p.pauser.Pause(ctx, boxID, level)
}

// resume brings a box back. The pool must have the power.
func (p *pool) resume(ctx context.Context, spec adapters.Spec) error {
	ctx, cancel := context.WithTimeout(ctx, p.changeBound)
	defer cancel()
	_, err := p.pauser.Resume(ctx, spec)
	return err
}

// snapshot copies a box. The pool must have the power.
func (p *pool) snapshot(ctx context.Context, spec adapters.Spec, name string) (adapters.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, p.changeBound)
	defer cancel()
	return p.snapshotter.Snapshot(ctx, spec, name)
}

// snapshots lists the copies of a deployment. The pool must have the power.
func (p *pool) snapshots(ctx context.Context, deployment string) ([]adapters.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, p.bound)
	defer cancel()
	return p.snapshotter.Snapshots(ctx, deployment)
}

// forget removes a copy. The pool must have the power.
func (p *pool) forget(ctx context.Context, snapshot adapters.Snapshot) error {
	ctx, cancel := context.WithTimeout(ctx, p.bound)
	defer cancel()
	return p.snapshotter.Forget(ctx, snapshot)
}

// setNetwork changes what a box may reach. The pool must have the power.
func (p *pool) setNetwork(ctx context.Context, boxID string, network adapters.Network) error {
	ctx, cancel := context.WithTimeout(ctx, p.bound)
	defer cancel()
	return p.networker.SetNetwork(ctx, boxID, network)
}

// Resolve finds a template.
func (p *pool) Resolve(ctx context.Context, name string) (adapters.Template, error) {
	ctx, cancel := context.WithTimeout(ctx, p.bound)
	defer cancel()
	return p.Watched.Resolve(ctx, name)
}

// unstock destroys a box in stock. The pool must have one.
func (p *pool) unstock(ctx context.Context, boxID string) error {
	ctx, cancel := context.WithTimeout(ctx, p.bound)
	defer cancel()
	return p.stock.Unstock(ctx, boxID)
}
