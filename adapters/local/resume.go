//go:build linux

package local

import (
	"context"
	"errors"

	"github.com/isthmus/isthmus/adapters"
)

// Resume boots a paused box again, on its own file system, and returns when envd answers. When that fails the box is
// paused as before.
func (l *Local) Resume(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	if err := l.checkNetwork(spec.Network); err != nil {
		return adapters.Box{}, err
	}
	done, err := l.turns.take(ctx, spec.BoxID)
	if err != nil {
		return adapters.Box{}, err
	}
	defer done()
	left := l.boxes.paused(spec.BoxID)
	if left == nil {
		return l.stillRuns(spec.BoxID)
	}
	if err := l.roomy(); err != nil {
		return adapters.Box{}, err
	}
	if err := l.boxes.rouse(spec.BoxID, left.record.Resources, l.config.Machine); err != nil {
		return adapters.Box{}, err
	}
	r, err := l.settle(ctx, left.record, left.path)
	if err != nil {
		l.boxes.leave(left)
		return adapters.Box{}, l.asleep(ctx, spec.BoxID, err)
	}
	spec.Resources = r.Resources
	m := newMaker(l, spec, Root{Name: r.Template, Layers: r.Layers})
	r.Internet, r.Reach = m.record.Internet, m.record.Reach
	m.record, m.path = r, left.path
	b, err := m.wake(ctx)
	if err != nil {
		return adapters.Box{}, l.asleep(ctx, spec.BoxID, errors.Join(err, l.back(ctx, m, b)))
	}
	l.boxes.add(b)
	return b.describe(), nil
}

// stillRuns is the answer for a box that is not paused.
func (l *Local) stillRuns(boxID string) (adapters.Box, error) {
	b, err := l.boxes.get(boxID)
	if err == nil && !b.alive() {
		err = gone(boxID)
	}
	if err != nil {
		return adapters.Box{}, err
	}
	return b.describe(), nil
}

// wake boots the box on what there is of it. That it is not paused any more is written down last.
func (m *maker) wake(ctx context.Context) (*box, error) {
	defer m.release()
	for _, step := range []func(context.Context) error{m.open, m.sockets, m.limits} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	b, err := m.boot(ctx)
	if err != nil {
		return b, err
	}
	next := *b.as()
	next.record.Paused = false
	if err := next.record.save(next.path); err != nil {
		return b, err
	}
	b.role.Store(&next)
	return b, nil
}

// back makes a box that did not come to life a paused one again.
func (l *Local) back(ctx context.Context, m *maker, b *box) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	var problem error
	if b != nil {
		problem = l.end(ctx, b)
	}
	r, err := l.settle(ctx, m.record, m.path)
	l.boxes.leave(r.resting(m.path))
	return errors.Join(problem, err)
}

// asleep is the answer when a paused box could not be resumed.
func (l *Local) asleep(ctx context.Context, boxID string, cause error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	l.log.Error("resume", "box", boxID, "error", cause)
	return adapters.Wrap(adapters.KindUnavailable, cause, "the sandbox could not be resumed and is still paused: try again, or see Isthmus's log")
}
