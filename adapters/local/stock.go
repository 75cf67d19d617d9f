//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local/inside"
	"github.com/isthmus/isthmus/adapters/local/inside/handover"
)

var _ adapters.Stocker = (*Local)(nil)

// Stock makes a box ahead. Of spec.Envd it needs the control secret of this box and a deadline, after which a
// box that nobody claimed ends by itself.
func (l *Local) Stock(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	if spec.Envd.Deadline.IsZero() || spec.Envd.Control == "" {
		return adapters.Box{}, adapters.Errorf(adapters.KindInvalid, "a box that is made ahead needs a deadline and a control secret")
	}
	if l.tier.bare {
		return adapters.Box{}, adapters.Errorf(adapters.KindUnsupported, "boxes without isolation are not made ahead: they start at once")
	}
	return l.create(ctx, spec, true)
}

// Claim makes a stocked box of the same template, sizes and network the box of spec.BoxID: it gets that id,
// folder and host name, and its envd starts with spec.Envd.
func (l *Local) Claim(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	if !boxIDs.MatchString(spec.BoxID) {
		return adapters.Box{}, adapters.Errorf(adapters.KindInvalid, "a box id has 1 to 40 characters of a-z and 0-9")
	}
	if err := l.roomy(); err != nil { // what it writes would be lost as that of any other box
		return adapters.Box{}, err
	}
	b, err := l.boxes.claim(spec.BoxID, func(b *box) bool {
		r := b.as().record
		return r.Stocked && b.alive() && r.Deployment == spec.Deployment && r.Template == spec.Template.Name &&
			r.Version == spec.Template.Version && r.Snapshot == spec.Template.Snapshot && r.Resources == spec.Resources && r.Reach.equal(l.reachOf(spec.Network))
	})
	if err != nil {
		return adapters.Box{}, err
	}
	if err := l.turn(ctx, b, spec); err != nil {
		left := b.remains() // known by what it was to become, whatever it came to
		left.known.ID, left.known.Attempt, left.known.SandboxID = spec.BoxID, spec.Attempt, spec.Envd.SandboxID
		problem := l.clear(context.WithoutCancel(ctx), left)
		l.log.Error("claim", "box", spec.BoxID, "error", errors.Join(err, problem))
		if problem != nil {
			l.boxes.leave(left)
			return adapters.Box{}, somethingLeft(err)
		}
		l.boxes.remove(spec.BoxID)
		if ctx.Err() != nil {
			return adapters.Box{}, ctx.Err()
		}
		return adapters.Box{}, adapters.Wrap(adapters.KindNotFound, err, "the sandbox that was made ahead could not be used")
	}
	l.boxes.add(b)
	return b.describe(), nil
}

// Unstock takes a box that nobody claimed out of the table, so that nobody can any more, and destroys it.
func (l *Local) Unstock(ctx context.Context, boxID string) error {
	left, err := l.boxes.withdraw(boxID)
	if err != nil {
		return err
	}
	if err := l.clear(ctx, left); err != nil {
		l.boxes.leave(left) // another try finds it
		return asAdapterError(ctx, err, "something of a sandbox that was made ahead is left on this machine")
	}
	l.boxes.remove(boxID)
	return nil
}

// turn gives a claimed box its new role. The rename of the folder is the step that counts: a facade that
// comes back after a part of this finds a record that does not fit its folder, and removes the box.
func (l *Local) turn(ctx context.Context, b *box, spec adapters.Spec) error {
	old := b.as()
	next := *old
	next.path = l.boxPath(spec.BoxID)
	next.transport, next.control = spec.Envd.Transport, spec.Envd.Control
	r := &next.record
	r.BoxID, r.SandboxID, r.Attempt, r.TeamID, r.Stocked = spec.BoxID, spec.Envd.SandboxID, spec.Attempt, spec.TeamID, false
	if err := os.Rename(old.path, next.path); err != nil {
		return fmt.Errorf("rename the box's folder: %w", err)
	}
	moved := *old // should a later step fail, this is what is there to be removed
	moved.path = next.path
	b.role.Store(&moved)
	traffic, err := b.hand(ctx, inside.Claim{Become: &inside.Become{Envd: spec.Envd, Hostname: spec.BoxID}})
	handover.CloseAll(traffic)
	if err != nil {
		return err
	}
	if l.ids != nil {
		if err := l.ids.Rename(old.record.BoxID, r.BoxID); err != nil {
			return err
		}
	}
	if err := r.save(next.path); err != nil {
		return err
	}
	b.role.Store(&next)
	return b.health(ctx)
}
