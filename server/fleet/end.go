package fleet

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
)

// claim decides, inside the transaction, whether a sandbox may be ended for this reason.
type claim func(store.Sandbox) error

// whenAny claims a sandbox whatever its state.
func whenAny(store.Sandbox) error { return nil }

// whenRunning claims a sandbox that clients can see, or one whose killing was cut off.
func whenRunning(sb store.Sandbox) error {
	if sb.State == store.StateCreating {
		return notFound(sb.ID)
	}
	return nil
}

// whenSeenRunning claims a sandbox that runs as far as clients know, for those who met a box that is not there: of one that
// is paused, or about to be, they may have met the pause.
func whenSeenRunning(sb store.Sandbox) error {
	if sb.State.Shown() == store.StatePaused {
		return asleep(sb)
	}
	return whenRunning(sb)
}

// whenDue claims a running sandbox whose deadline has passed: one that was extended meanwhile goes on.
func whenDue(at time.Time) claim {
	return func(sb store.Sandbox) error {
		if sb.State != store.StateRunning || sb.EndAt.After(at) {
			return adapters.Errorf(adapters.KindPrecondition, "sandbox %s is not due", sb.ID)
		}
		return nil
	}
}

// ending is the end of one sandbox in progress.
type ending struct {
	done chan struct{}
	err  error
	// refused says that the claim was refused, so that nothing has happened.
	refused bool
}

// endings are the ends in progress, by sandbox id.
type endings struct {
	mu  sync.Mutex
	all map[string]*ending
}

// join returns the ending in progress, or a new one that the caller must carry out.
func (s *endings) join(id string) (_ *ending, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if there := s.all[id]; there != nil {
		return there, false
	}
	if s.all == nil {
		s.all = map[string]*ending{}
	}
	one := &ending{done: make(chan struct{})}
	s.all[id] = one
	return one, true
}

func (s *endings) finish(id string, one *ending, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.err = err
	delete(s.all, id)
	close(one.done)
}

// end ends one sandbox and returns when nothing of it is left. Callers at the same time join the first one,
// whose claim and reason count, unless its claim was refused. The work goes on when ctx ends.
func (f *Fleet) end(ctx context.Context, id, reason string, may claim) error {
	for {
		one, mine := f.beginEnd(id, reason, may)
		select {
		case <-one.done:
		case <-ctx.Done():
			return adapters.Wrap(adapters.KindUnavailable, ctx.Err(), "the sandbox is being ended, which takes longer than the request")
		}
		if mine || !one.refused {
			return one.err
		}
	}
}

// endHere is end for callers that are in a task already: the work is theirs, so that it is done also while the
// fleet is stopping. What fails is logged and left to Reconcile.
func (f *Fleet) endHere(work context.Context, id, reason string, may claim) {
	for {
		one, mine := f.endings.join(id)
		if mine {
			f.endings.finish(id, one, f.carryOut(work, one, id, reason, may))
		}
		select {
		case <-one.done:
		case <-work.Done():
			f.log.Error("a sandbox was not ended in time", "sandbox", id, "reason", reason)
			return
		}
		if !mine && one.refused {
			continue
		}
		if one.err != nil && adapters.KindOf(one.err) != adapters.KindNotFound {
			f.log.Error("a sandbox is not ended yet", "sandbox", id, "reason", reason, "err", one.err)
		}
		return
	}
}

// endLater is end without waiting, for those who come again when it comes to nothing.
func (f *Fleet) endLater(id, reason string, may claim) { f.beginEnd(id, reason, may) }

// beginEnd starts the end in a task of its own, or joins the one in progress.
func (f *Fleet) beginEnd(id, reason string, may claim) (_ *ending, mine bool) {
	one, mine := f.endings.join(id)
	if mine && !f.tasks.start(func(work context.Context) { f.endings.finish(id, one, f.carryOut(work, one, id, reason, may)) }) {
		f.endings.finish(id, one, stopping())
	}
	return one, mine
}

// carryOut claims the record, which is the point of no return, cuts the streams, destroys the box, and
// removes the record last, so that a crash anywhere leaves something to go on from.
func (f *Fleet) carryOut(ctx context.Context, one *ending, id, reason string, may claim) error {
	sb, err := f.claimEnd(ctx, one, id, may)
	if err != nil {
		return storeError(id, err)
	}
	if home := f.homes.leave(id); home != nil {
		f.lastWords(ctx, home)
	}
	why := f.why(ctx, sb, reason)
	f.note(ctx, sb, "sandbox "+reason, why)
	if err := f.destroy(ctx, sb); err != nil {
		f.log.Error("a box could not be destroyed: it is tried again", "pool", sb.Pool, "box", sb.BoxID, "err", err)
		return err
	}
	if err := f.store.Sandboxes.Delete(ctx, id); err != nil {
		return storeError(id, err)
	}
	f.stats.ended(reason)
	f.log.Info("sandbox ended", "sandbox", id, "reason", reason, "why", why["why"])
	return nil
}

// claimEnd claims the record. A pause, a resume or a snapshot in progress is waited for: the place is not asked for two
// things at once.
func (f *Fleet) claimEnd(ctx context.Context, one *ending, id string, may claim) (store.Sandbox, error) {
	for {
		var busy *move
		sb, err := f.store.Sandboxes.Change(ctx, id, func(record *store.Sandbox) error {
			err := may(*record)
			if one.refused = err != nil; one.refused {
				return err
			}
			// A move is known before it claims: where the record says one and none is known, its facade has died.
			if busy = f.moves.get(id); busy != nil && record.State.Changing() {
				return errMoving
			}
			record.State = store.StateKilling
			return nil
		})
		if !errors.Is(err, errMoving) {
			return sb, err
		}
		if err := busy.wait(ctx); err != nil {
			return store.Sandbox{}, err
		}
	}
}

// destroy removes the box, with a few tries: after them Reconcile goes on.
func (f *Fleet) destroy(ctx context.Context, sb store.Sandbox) error {
	p, err := f.poolOf(sb.Pool)
	if err != nil {
		return err
	}
	select {
	case p.destroying <- struct{}{}:
		defer func() { <-p.destroying }()
	case <-ctx.Done():
		return stopping()
	}
	const tries = 3
	for try := 1; ; try++ {
		err := p.Destroy(ctx, sb.BoxID)
		if err == nil || adapters.KindOf(err) == adapters.KindNotFound {
			return nil
		}
		if try == tries || errors.Is(err, context.DeadlineExceeded) || !sleep(ctx, time.Duration(try)*100*time.Millisecond) {
			return err
		}
	}
}

// endedByItself is the reason of an end that nobody asked for.
const endedByItself = "ended by itself"

// why is what the place knows of such an end, before the remains that tell it are removed.
func (f *Fleet) why(ctx context.Context, sb store.Sandbox, reason string) map[string]string {
	p, err := f.poolOf(sb.Pool)
	if err != nil || reason != endedByItself || p.explain == nil {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, p.bound)
	defer cancel()
	if text := p.explain.Why(bounded, sb.BoxID); text != "" {
		return map[string]string{"why": text}
	}
	return nil
}

// vanish ends a sandbox whose box has ended by itself.
func (f *Fleet) vanish(ctx context.Context, id string, may claim) {
	if err := f.end(ctx, id, endedByItself, may); err != nil && adapters.KindOf(err) != adapters.KindNotFound {
		f.log.Warn("a sandbox that ended by itself is not cleared away yet", "sandbox", id, "err", err)
	}
}
