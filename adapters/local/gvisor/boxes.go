//go:build linux

package gvisor

import (
	"context"
	"os"

	"github.com/isthmus/isthmus/adapters"
)

// reserve takes an id for a create, without a box.
func (p *place) reserve(id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, taken := p.boxes[id]; taken {
		return adapters.Errorf(adapters.KindExists, "a sandbox with the id %s is there already", id)
	}
	if p.config.Boxes > 0 && len(p.boxes) >= p.config.Boxes {
		return adapters.Errorf(adapters.KindCapacity,
			"this machine holds %d sandboxes and its configured ceiling has no room for another: kill one, or raise the ceiling", len(p.boxes))
	}
	p.boxes[id] = nil
	return nil
}

func (p *place) add(b *box) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.boxes[b.record.BoxID] = b
}

func (p *place) forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.boxes, id)
}

// get returns a box; one that is being made is not there yet.
func (p *place) get(id string) (*box, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b := p.boxes[id]; b != nil {
		return b, nil
	}
	return nil, adapters.Errorf(adapters.KindNotFound, "there is no sandbox %s on this machine", id)
}

// Get returns one box.
func (p *place) Get(_ context.Context, boxID string) (adapters.Box, error) {
	b, err := p.get(boxID)
	if err != nil {
		return adapters.Box{}, err
	}
	return b.describe(), nil
}

// List returns the boxes of one deployment.
func (p *place) List(_ context.Context, deployment string) ([]adapters.Box, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []adapters.Box
	for _, b := range p.boxes {
		if b != nil && (b.record.Deployment == deployment || b.record.Deployment == "") {
			list = append(list, b.describe())
		}
	}
	return list, nil
}

// Destroy ends a box and removes everything of it. A box that is not there is success.
func (p *place) Destroy(ctx context.Context, boxID string) error {
	b, err := p.get(boxID)
	if err != nil {
		return nil
	}
	if err := p.clear(ctx, b); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return adapters.Wrap(adapters.KindUnavailable, err, "something of the sandbox is left on this machine: kill it again")
	}
	p.forget(boxID)
	return nil
}

// Ended returns a channel that is closed when the box has ended, however it ended.
func (p *place) Ended(boxID string) (<-chan struct{}, error) {
	b, err := p.get(boxID)
	if err != nil {
		return nil, err
	}
	if b.pidfd == nil {
		return nil, adapters.Errorf(adapters.KindNotFound, "the sandbox %s has ended", boxID)
	}
	return b.ended, nil
}

// adopt takes the boxes of an earlier facade over that run, and removes what is left of the others.
func (p *place) adopt(ctx context.Context) error {
	entries, err := os.ReadDir(p.boxPath(""))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := p.adoptOne(ctx, e.Name()); err != nil {
			p.log.Error("box of an earlier run", "box", e.Name(), "error", err)
		}
	}
	return nil
}

func (p *place) adoptOne(ctx context.Context, id string) error {
	path := p.boxPath(id)
	r, err := load(path)
	r.BoxID = id
	left := &box{record: r, path: path}
	if err == nil {
		var fd int
		if fd, err = r.Sandbox.Open(); err == nil {
			b := p.watched(r, path, fd)
			p.add(b)
			return p.serve(ctx, b)
		}
	}
	if os.IsNotExist(err) {
		if err = p.clear(ctx, left); err == nil {
			return nil
		}
	}
	p.add(left)
	return err
}
