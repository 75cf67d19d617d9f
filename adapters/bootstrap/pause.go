package bootstrap

import (
	"context"
	"net/http"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
)

// wakeTime bounds the wait for an envd that may go on by itself after a resume or a snapshot. Where the place keeps
// memory, it answers as soon as its box runs; where it does not, starting it needs no more than this longer.
const wakeTime = 5 * time.Second

type pauser struct {
	*Provider
	place adapters.Pauser
}

// Pause stops a box. Its envd loses its own deadline first, which would otherwise end the box as soon as it goes on.
func (p pauser) Pause(ctx context.Context, boxID string, level adapters.Level) error {
	box, err := p.Get(ctx, boxID)
	switch {
	case err != nil:
		return err
	case !box.Alive:
		return adapters.Errorf(adapters.KindNotFound, "the sandbox %s has ended", boxID)
	case !box.Paused && level == adapters.LevelMemory:
		if err := p.tell(ctx, boxID, http.MethodPut, envd.RouteDeadline, until(time.Time{}), nil); err != nil {
			return err
		}
	}
	if err := p.place.Pause(ctx, boxID, level); err != nil {
		return err
	}
	if p.links != nil {
		p.links.drop(boxID)
	}
	return nil
}

// Resume brings a box back, and envd with it.
func (p pauser) Resume(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	box, err := p.place.Resume(ctx, spec)
	if err != nil {
		return adapters.Box{}, err
	}
	return box, p.revive(ctx, spec)
}

type snapshotter struct {
	*Provider
	place adapters.Snapshotter
}

// Snapshot copies a box, and brings envd back where the place had to stop the box for that.
func (p snapshotter) Snapshot(ctx context.Context, spec adapters.Spec, name string) (adapters.Snapshot, error) {
	made, err := p.place.Snapshot(ctx, spec, name)
	if err != nil {
		return adapters.Snapshot{}, err
	}
	if err := p.revive(ctx, spec); err != nil {
		return made, adapters.Wrap(adapters.KindUnknownOutcome, err, "the copy was made, but its sandbox does not answer yet")
	}
	return made, nil
}

// Snapshots lists the copies.
func (p snapshotter) Snapshots(ctx context.Context, deployment string) ([]adapters.Snapshot, error) {
	return p.place.Snapshots(ctx, deployment)
}

// Forget removes a copy.
func (p snapshotter) Forget(ctx context.Context, snapshot adapters.Snapshot) error {
	return p.place.Forget(ctx, snapshot)
}

// revive returns when envd answers in a box that was stopped: one that went on is told its new deadline, where none
// did it is started and configured again. The box is kept whatever fails.
func (p *Provider) revive(ctx context.Context, spec adapters.Spec) error {
	if p.config.Waits { // one that waits takes a deadline too, and is nothing yet
		if err := p.boot(ctx, spec); err != nil {
			return err
		}
		return p.tell(ctx, spec.BoxID, http.MethodPut, envd.RouteDeadline, until(spec.Envd.Deadline), nil)
	}
	wake, cancel := context.WithTimeout(ctx, wakeTime)
	defer cancel()
	if p.call(wake, spec.BoxID, http.MethodPut, envd.RouteDeadline, until(spec.Envd.Deadline), nil) == nil {
		return nil
	}
	if p.links != nil {
		p.links.drop(spec.BoxID) // a stream from before leads nowhere
	}
	err := p.boot(ctx, spec)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case p.tell(ctx, spec.BoxID, http.MethodPut, envd.RouteDeadline, until(spec.Envd.Deadline), nil) == nil:
		return nil // it had gone on, and was only slow to answer
	}
	return err
}
