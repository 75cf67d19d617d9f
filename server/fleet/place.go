package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/translate/placement"
)

// errUndecided marks an outcome that stayed unknown: the intent is then kept for Reconcile.
var errUndecided = errors.New("the outcome of the create is not known")

// place tries the candidates of a plan in order and hands over what was made. When it fails, the intent is removed only if
// nothing of it can be anywhere.
func (f *Fleet) place(ctx context.Context, m *making, sb store.Sandbox, req placement.Request, p *plan) (store.Sandbox, error) {
	defer func() { f.remember(ctx, sb.ID, p.decision) }()
	began := time.Now()
	made, err := f.tryAll(ctx, m, sb, req, p)
	p.stage(placement.StageTry, began)
	if err != nil {
		return store.Sandbox{}, err
	}
	answered := time.Now()
	running, err := f.settled(ctx, made)
	p.stage(placement.StageRun, answered)
	return running, err
}

// stage notes a step that ends now.
func (p *plan) stage(name string, began time.Time) {
	p.decision.Stages = append(p.decision.Stages, placement.Stage{Name: name, Began: began, Ended: time.Now()})
}

// tryAll tries the candidates in order and returns the intent of the box that was made, whose envd answers.
func (f *Fleet) tryAll(ctx context.Context, m *making, sb store.Sandbox, req placement.Request, p *plan) (store.Sandbox, error) {
	var failure error
	for i, c := range p.order {
		if i > 0 {
			if err := f.stillAllowed(ctx, req, c, p); err != nil {
				f.abandon(ctx, sb)
				return store.Sandbox{}, err
			}
			var err error
			if sb, err = f.rebind(ctx, sb, req, c); err != nil {
				return store.Sandbox{}, err
			}
		}
		var attempt placement.Attempt
		attempt, failure = f.try(ctx, m, sb, req, c)
		p.decision.Attempts = append(p.decision.Attempts, attempt)
		switch {
		case failure == nil && m.isLeft(): // nobody knows its id: it must not be seen as running
			f.discard(ctx, sb)
			return store.Sandbox{}, adapters.Errorf(adapters.KindUnavailable, "the caller left before the sandbox was ready: it is removed")
		case failure == nil:
			return sb, nil
		case errors.Is(failure, errUndecided):
			return store.Sandbox{}, failure
		}
		if attempt.Next == placement.Stop || m.isLeft() {
			f.abandon(ctx, sb)
			return store.Sandbox{}, failure
		}
	}
	f.abandon(ctx, sb)
	if p.alone {
		return store.Sandbox{}, failure
	}
	return store.Sandbox{}, p.decision.Exhausted()
}

// stillAllowed asks again whether the caller may have the sandbox, before another pool is called. Where not, the record
// says so.
func (f *Fleet) stillAllowed(ctx context.Context, req placement.Request, c candidate, p *plan) error {
	if req.Allowed == nil {
		return nil
	}
	began := now()
	err := req.Allowed(ctx)
	if err != nil {
		p.decision.Attempts = append(p.decision.Attempts, placement.Attempt{
			Pool: c.pool.name, Provider: c.pool.terms.Load().facts.Provider, Began: began, Ended: now(),
			Kind: adapters.KindOf(err), Message: err.Error(), Next: placement.Stop,
		})
	}
	return err
}

// rebind writes the next home into the intent before its provider is called.
func (f *Fleet) rebind(ctx context.Context, sb store.Sandbox, req placement.Request, c candidate) (store.Sandbox, error) {
	next := f.intent(sb.ID, req, c)
	changed, err := f.store.Sandboxes.Change(ctx, sb.ID, func(record *store.Sandbox) error {
		*record = next
		return nil
	})
	return changed, storeError(sb.ID, err)
}

// attempt makes the box in one pool. An error other than errUndecided means that nothing of it is left.
func (f *Fleet) attempt(ctx context.Context, m *making, spec adapters.Spec, p *pool) error {
	err := p.create(ctx, m.left, spec)
	if err == nil || leavesNothing(err) {
		return err
	}
	f.log.Warn("create: looking up what became of a box", "pool", p.name, "box", spec.BoxID, "err", err)
	if f.lookUp(ctx, p, spec.BoxID, spec.Attempt) == nil {
		return nil
	}
	absent := f.absent(ctx, p, spec.BoxID, spec.Attempt)
	switch {
	case absent == nil && errors.Is(err, context.DeadlineExceeded):
		return adapters.Wrap(adapters.KindUnavailable, err, "it did not answer in time, and made nothing")
	case absent == nil:
		return err
	}
	return absent
}

// leavesNothing reports whether an adapter's error promises that no box was made.
func leavesNothing(err error) bool {
	var typed *adapters.Error
	if !errors.As(err, &typed) {
		return false // an ended context, or a broken promise
	}
	switch typed.Kind {
	case adapters.KindUnknownOutcome, adapters.KindExists, adapters.KindInternal:
		return false
	}
	return true
}

// settled turns the intent into a running sandbox. Its time to live starts now.
func (f *Fleet) settled(ctx context.Context, sb store.Sandbox) (store.Sandbox, error) {
	running, err := f.store.Sandboxes.Change(ctx, sb.ID, func(record *store.Sandbox) error {
		if record.State != store.StateCreating {
			return notFound(sb.ID)
		}
		record.State = store.StateRunning
		record.StartedAt = now()
		record.EndAt = record.StartedAt.Add(min(record.Timeout, f.longestLife(*record)))
		return nil
	})
	if err != nil {
		f.discard(ctx, sb)
		return store.Sandbox{}, storeError(sb.ID, err)
	}
	one, err := f.open(ctx, running)
	if err == nil && one.route.Inner != nil {
		running, err = f.noteVersion(ctx, running, one.route.Inner.EnvdVersion)
	}
	if err != nil {
		f.endHere(ctx, sb.ID, "unreachable", whenAny)
		return store.Sandbox{}, err
	}
	f.wakeReaper()
	f.note(ctx, running, "sandbox created", map[string]string{
		"template": running.Alias, "pool": running.Pool, "end_at": running.EndAt.Format(time.RFC3339)})
	return running, nil
}

// noteVersion writes down the version of an envd that is not ours: clients go by it.
func (f *Fleet) noteVersion(ctx context.Context, sb store.Sandbox, version string) (store.Sandbox, error) {
	if version == sb.EnvdVersion {
		return sb, nil
	}
	changed, err := f.store.Sandboxes.Change(ctx, sb.ID, func(record *store.Sandbox) error {
		record.EnvdVersion = version
		return nil
	})
	return changed, storeError(sb.ID, err)
}

// discard destroys a box that must not stay, and then its intent. What fails is left to Reconcile.
func (f *Fleet) discard(ctx context.Context, sb store.Sandbox) {
	if err := f.destroy(ctx, sb); err != nil {
		f.log.Error("create: a box that must not stay could not be destroyed", "pool", sb.Pool, "box", sb.BoxID, "err", err)
		return
	}
	f.abandon(ctx, sb)
}

// abandon removes an intent that made nothing. What fails is left to Reconcile.
func (f *Fleet) abandon(ctx context.Context, sb store.Sandbox) {
	if err := f.store.Sandboxes.Abandon(ctx, sb); err != nil {
		f.log.Error("create: an intent that made nothing could not be removed", "sandbox", sb.ID, "err", err)
	}
}
