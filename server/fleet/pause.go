package fleet

import (
	"context"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/translate/placement"
)

// moveTries is how often a place is asked again after an outcome that is not known.
const moveTries = 3

// A sandbox whose pause at its end came to nothing is tried again after pauseAgain, for pauseTime in all: its place may be
// away for a night. The box's own deadline lies behind that.
const (
	pauseAgain = 30 * time.Second
	pauseTime  = autoPauseSlack / 2
)

// Pause stops a running sandbox of the team and keeps it. KindPrecondition when it is paused already, KindNotFound when
// it is being killed, KindUnsupported when its place cannot keep what is asked for; a pause in progress is joined.
func (f *Fleet) Pause(ctx context.Context, teamID, id string, how placement.Pause) error {
	sb, err := f.owned(ctx, teamID, id)
	if err != nil {
		return err
	}
	joins := sb.State == store.StatePausing
	p, err := f.poolOf(sb.Pool)
	if err != nil {
		return err
	}
	level, err := p.pauseLevel(how.Memory)
	if err == nil && how.Healthy && sb.State == store.StateRunning {
		err = f.isHealthy(ctx, p, sb)
	}
	if err != nil {
		return err
	}
	_, err = f.alone(ctx, id, func(ctx context.Context) (store.Sandbox, error) {
		current, err := f.store.Sandboxes.Get(ctx, id)
		switch {
		case err != nil:
			return store.Sandbox{}, storeError(id, err)
		case joins && current.State == store.StatePausing: // whoever claimed it has died
			return f.finishPause(ctx, current)
		case joins && current.State == store.StatePaused:
			return current, nil
		}
		return f.pause(ctx, id, level, whenPausable)
	})
	return err
}

// isHealthy asks envd whether it answers.
func (f *Fleet) isHealthy(ctx context.Context, p *pool, sb store.Sandbox) error {
	bounded, cancel := context.WithTimeout(ctx, f.cfg.Timing.Settle)
	defer cancel()
	if err := f.answers(bounded, p, sb.BoxID); err != nil {
		return adapters.Wrap(adapters.KindUnavailable, err, "the sandbox "+sb.ID+" does not answer: it was not paused and runs on")
	}
	return nil
}

// pauseLevel is what a pause keeps here.
func (p *pool) pauseLevel(memory *bool) (adapters.Level, error) {
	has := adapters.Level(p.terms.Load().facts.Capabilities.Value(adapters.FeaturePause))
	switch {
	case p.pauser == nil || has != adapters.LevelFilesystem && has != adapters.LevelMemory:
		return "", unsupported("pauseSandbox is not supported here: pool %s cannot pause sandboxes. "+
			"Leave it running with a longer timeout, or create it with the requirement pause=filesystem", p.name)
	case memory == nil:
		return has, nil
	case !*memory:
		return adapters.LevelFilesystem, nil
	case has != adapters.LevelMemory:
		return "", unsupported("memory: true is not supported here: pool %s keeps the files of a paused sandbox and not its memory. "+
			"Send memory: false, or create it with the requirement pause=memory", p.name)
	}
	return adapters.LevelMemory, nil
}

// whenAwake claims a sandbox that runs and that nothing else is done to.
func whenAwake(sb store.Sandbox) error {
	switch sb.State {
	case store.StateRunning:
		return nil
	case store.StateCreating:
		return notFound(sb.ID)
	case store.StateKilling:
		return endingError(sb.ID)
	case store.StatePaused:
		return adapters.Errorf(adapters.KindPrecondition, "sandbox %s is paused already", sb.ID)
	}
	return adapters.Errorf(adapters.KindPrecondition, "sandbox %s is %s at the moment: try again", sb.ID, sb.State)
}

// whenPausable is whenAwake for a client's pause. SDKs take a conflict to mean that it is paused already, so one that
// nothing keeps any more is not there.
func whenPausable(sb store.Sandbox) error {
	if sb.State == store.StateKilling {
		return notFound(sb.ID)
	}
	return whenAwake(sb)
}

// pauseAtEnd pauses a sandbox whose time is over. One that cannot be paused now runs on for a little and is tried again:
// whoever asked for a pause must not lose it. One whose pool cannot pause at all, or not for long, ends as every sandbox
// does whose time is over.
func (f *Fleet) pauseAtEnd(ctx context.Context, sb store.Sandbox, may claim) (store.Sandbox, error) {
	p, err := f.poolOf(sb.Pool)
	if err != nil {
		return f.postpone(ctx, sb, may, err)
	}
	level := adapters.Level(sb.AutoPauseLevel)
	if level == "" {
		if level, err = p.pauseLevel(nil); err != nil {
			return f.postpone(ctx, sb, may, err)
		}
	}
	claimed, err := f.claimPause(ctx, sb.ID, level, may)
	if err != nil {
		return store.Sandbox{}, err // it was extended meanwhile, or ended
	}
	paused, err := f.finishPause(ctx, claimed)
	if err != nil {
		return f.postpone(ctx, sb, may, err)
	}
	return paused, nil
}

// postpone moves the end of a running sandbox that could not be paused, or ends it where that is of no use.
func (f *Fleet) postpone(ctx context.Context, sb store.Sandbox, may claim, cause error) (store.Sandbox, error) {
	if hopeless(sb, cause) {
		f.log.Error("a sandbox could not be paused at its end: it is ended", "sandbox", sb.ID, "pool", sb.Pool, "err", cause)
		f.endHere(ctx, sb.ID, "timed out", may)
		return store.Sandbox{}, nil
	}
	f.log.Error("a sandbox could not be paused at its end: it is tried again", "sandbox", sb.ID, "pool", sb.Pool, "err", cause)
	_, err := f.store.Sandboxes.Change(ctx, sb.ID, func(record *store.Sandbox) error {
		if again := now().Add(pauseAgain); record.State == store.StateRunning && record.EndAt.Before(again) {
			if record.PauseDueAt.IsZero() {
				record.PauseDueAt = now()
			}
			record.EndAt = again
		}
		return nil
	})
	if err != nil {
		return store.Sandbox{}, storeError(sb.ID, err)
	}
	return store.Sandbox{}, cause
}

// hopeless reports whether a pause at the end need not be tried again: it never comes about here, or has not for long.
func hopeless(sb store.Sandbox, cause error) bool {
	return adapters.KindOf(cause) == adapters.KindUnsupported || !sb.PauseDueAt.IsZero() && now().Sub(sb.PauseDueAt) >= pauseTime
}

// pause claims a sandbox and pauses it.
func (f *Fleet) pause(ctx context.Context, id string, level adapters.Level, may claim) (store.Sandbox, error) {
	sb, err := f.claimPause(ctx, id, level, may)
	if err != nil {
		return store.Sandbox{}, err
	}
	return f.finishPause(ctx, sb)
}

func (f *Fleet) claimPause(ctx context.Context, id string, level adapters.Level, may claim) (store.Sandbox, error) {
	sb, err := f.store.Sandboxes.Change(ctx, id, func(record *store.Sandbox) error {
		if err := may(*record); err != nil {
			return err
		}
		record.State, record.PauseLevel, record.PauseTried = store.StatePausing, string(level), ""
		return nil
	})
	return sb, storeError(id, err)
}

// finishPause pauses a sandbox that was claimed for it, by this process or by one that died.
func (f *Fleet) finishPause(ctx context.Context, sb store.Sandbox) (store.Sandbox, error) {
	p, err := f.poolOf(sb.Pool)
	if err != nil {
		return store.Sandbox{}, err
	}
	if p.pauser == nil {
		return f.runOn(ctx, sb, unsupported("pool %s cannot pause sandboxes any more", p.name))
	}
	if home := f.homes.leave(sb.ID); home != nil {
		f.lastWords(ctx, home)
	}
	for try := 1; ; try++ {
		err := p.pause(ctx, sb.BoxID, adapters.Level(sb.PauseLevel))
		if err == nil {
			return f.paused(ctx, sb)
		}
		box, lookErr := p.Get(ctx, sb.BoxID)
		switch {
		case isLost(box, lookErr):
			return store.Sandbox{}, f.lostFor(sb.ID)
		case lookErr != nil: // Reconcile goes on
			return store.Sandbox{}, unknownMove(p, sb.ID, "paused", err)
		case box.Paused:
			return f.paused(ctx, sb)
		case leavesNothing(err) || try == moveTries:
			return f.runOn(ctx, sb, err)
		}
		if !sleep(ctx, time.Duration(try)*100*time.Millisecond) {
			return store.Sandbox{}, unknownMove(p, sb.ID, "paused", err)
		}
	}
}

// paused notes that the box is stopped.
func (f *Fleet) paused(ctx context.Context, sb store.Sandbox) (store.Sandbox, error) {
	changed, err := f.store.Sandboxes.Change(ctx, sb.ID, func(record *store.Sandbox) error {
		if record.State != store.StatePausing {
			return errMoved
		}
		record.State, record.EndAt, record.PauseDueAt = store.StatePaused, now(), time.Time{}
		return nil
	})
	if err != nil {
		return store.Sandbox{}, storeError(sb.ID, err)
	}
	f.note(ctx, changed, "sandbox paused", map[string]string{"keeps": changed.PauseLevel})
	f.log.Info("sandbox paused", "sandbox", sb.ID, "keeps", changed.PauseLevel)
	return changed, nil
}

// runOn takes the claim of a pause back that came to nothing, as far as is known.
func (f *Fleet) runOn(ctx context.Context, sb store.Sandbox, cause error) (store.Sandbox, error) {
	changed, err := f.store.Sandboxes.Change(ctx, sb.ID, func(record *store.Sandbox) error {
		if record.State != store.StatePausing {
			return errMoved
		}
		if !leavesNothing(cause) {
			record.PauseTried, record.PauseTriedAt = record.PauseLevel, now()
		}
		record.State, record.PauseLevel = store.StateRunning, ""
		return nil
	})
	if err != nil {
		return store.Sandbox{}, storeError(sb.ID, err)
	}
	f.keep(ctx, changed)
	f.wakeReaper()
	return store.Sandbox{}, cause
}
