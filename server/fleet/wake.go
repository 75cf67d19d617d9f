package fleet

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/translate/placement"
)

var (
	// errAsleep marks refusals of what only a running sandbox has.
	errAsleep = errors.New("the sandbox is paused")
	// errMoved marks a claim that is not held any more.
	errMoved = adapters.Errorf(adapters.KindPrecondition, "the sandbox changed meanwhile: try again")
)

// leastWake is the least time to live that traffic gives a sandbox which it wakes.
const leastWake = 15 * time.Second

// Asleep is the error of a paused sandbox that traffic may wake, and what the request must come with. It is
// KindNotFound for whoever does not wake it.
type Asleep struct {
	// EnvdToken guards envd's port, TrafficToken all others; empty: nothing does.
	EnvdToken, TrafficToken string
	cause                   error
}

// Error says why there is no route.
func (a *Asleep) Error() string { return "the sandbox is paused" }

// Unwrap returns the error with its kind.
func (a *Asleep) Unwrap() error { return a.cause }

// asleep is the answer of a sandbox that is paused, or about to be, where only a running one will do.
func asleep(sb store.Sandbox) error {
	if sb.State == store.StatePaused {
		return adapters.Wrap(adapters.KindNotFound, errAsleep, "sandbox "+sb.ID+" is paused: connect to it first")
	}
	return adapters.Wrap(adapters.KindPrecondition, errAsleep, "sandbox "+sb.ID+" is "+string(sb.State)+" at the moment: try again")
}

// asleepRoute is the answer to traffic. Only what kept its memory can be woken by it: in one that kept its files
// nothing listens any more.
func (f *Fleet) asleepRoute(sb store.Sandbox) error {
	if !sb.AutoResume || sb.PauseLevel != string(adapters.LevelMemory) {
		return notFound(sb.ID)
	}
	envdToken, traffic := f.derive(sb)
	return &Asleep{EnvdToken: envdToken, TrafficToken: traffic, cause: notFound(sb.ID)}
}

// Connect returns a running sandbox of the team that lives for at least Timeout from now; its life is never
// shortened. A paused one is resumed, which resumed says.
func (f *Fleet) Connect(ctx context.Context, teamID, id string, wake placement.Wake) (_ store.Sandbox, resumed bool, _ error) {
	if wake.Timeout > f.cfg.LongestLife {
		return store.Sandbox{}, false, f.tooLong()
	}
	for {
		sb, err := f.owned(ctx, teamID, id)
		switch {
		case err != nil:
			return store.Sandbox{}, false, err
		case sb.State == store.StateKilling:
			return store.Sandbox{}, false, endingError(id)
		case sb.State.Shown() == store.StateRunning:
			sb, err := f.setEnd(ctx, teamID, id, wake.Timeout, true)
			if errors.Is(err, errAsleep) {
				continue // it was paused in between
			}
			return sb, resumed, err
		}
		if err := f.wake(ctx, id, wake); err != nil {
			return store.Sandbox{}, false, err
		}
		resumed = true
	}
}

// Wake resumes a paused sandbox for traffic, with the time to live of its create. It returns when the sandbox runs.
func (f *Fleet) Wake(ctx context.Context, id string) error {
	sb, err := f.store.Sandboxes.Get(ctx, id)
	if err != nil {
		return storeError(id, err)
	}
	return f.wake(ctx, id, placement.Wake{Timeout: min(max(sb.Timeout, leastWake), f.cfg.LongestLife)})
}

// wake brings a sandbox to run, whatever is being done to it.
func (f *Fleet) wake(ctx context.Context, id string, wake placement.Wake) error {
	_, err := f.alone(ctx, id, func(ctx context.Context) (store.Sandbox, error) {
		sb, err := f.store.Sandboxes.Get(ctx, id)
		if err == nil && sb.State == store.StatePausing { // whoever claimed it has died
			sb, err = f.finishPause(ctx, sb)
		}
		switch {
		case err != nil:
			return store.Sandbox{}, storeError(id, err)
		case sb.State == store.StateResuming:
			return f.finishResume(ctx, sb)
		case sb.State == store.StatePaused:
			return f.resume(ctx, sb, wake)
		case sb.State.Shown() == store.StateRunning:
			return sb, nil
		}
		return store.Sandbox{}, endingError(id)
	})
	return err
}

// resume claims a paused sandbox and resumes it.
func (f *Fleet) resume(ctx context.Context, sb store.Sandbox, wake placement.Wake) (store.Sandbox, error) {
	if err := memoryFits(sb, wake.Memory); err != nil {
		return store.Sandbox{}, err
	}
	claimed, err := f.store.Sandboxes.Wake(ctx, sb.ID, f.cfg.TeamConcurrency, func(record *store.Sandbox) error {
		if record.State != store.StatePaused {
			return errMoved
		}
		record.State, record.ResumeFor = store.StateResuming, wake.Timeout
		if wake.AutoPause != nil {
			record.AutoPause = *wake.AutoPause
		}
		record.ResumeFor = min(record.ResumeFor, f.longestLife(*record))
		return nil
	})
	switch {
	case errors.Is(err, store.ErrTeamLimit):
		return store.Sandbox{}, f.teamIsFull()
	case err != nil:
		return store.Sandbox{}, storeError(sb.ID, err)
	}
	return f.finishResume(ctx, claimed)
}

// memoryFits refuses to leave out the memory that was kept. That it must be there is what everybody asks for who says
// nothing; where there is none, there is nothing to restore (control plane facts: the field of connect and resume).
func memoryFits(sb store.Sandbox, memory *bool) error {
	if memory == nil || *memory || sb.PauseLevel != string(adapters.LevelMemory) {
		return nil
	}
	err := unsupported("memory: false is not supported here: sandbox %s was paused with its memory and goes on with it. Leave the field out", sb.ID)
	err.Code = "sandbox_memory_override_disabled"
	return err
}

// finishResume resumes a sandbox that was claimed for it, by this process or by one that died.
func (f *Fleet) finishResume(ctx context.Context, sb store.Sandbox) (store.Sandbox, error) {
	p, err := f.poolOf(sb.Pool)
	if err == nil && p.pauser == nil {
		err = adapters.Errorf(adapters.KindUnavailable, "pool %s cannot resume sandboxes any more: the sandbox is kept", p.name)
	}
	var spec adapters.Spec
	if err == nil {
		spec, err = f.specAgain(sb, now().Add(sb.ResumeFor))
	}
	if err != nil {
		return f.sleepOn(ctx, sb, err)
	}
	for try := 1; ; try++ {
		err := p.resume(ctx, spec)
		if err == nil {
			return f.awake(ctx, sb)
		}
		box, lookErr := p.Get(ctx, sb.BoxID)
		switch {
		case isLost(box, lookErr):
			return store.Sandbox{}, f.lostFor(sb.ID)
		case lookErr != nil: // Reconcile goes on
			return store.Sandbox{}, unknownMove(p, sb.ID, "resumed", err)
		case box.Paused && (leavesNothing(err) || try == moveTries):
			return f.sleepOn(ctx, sb, err)
		case !box.Paused && f.answers(ctx, p, sb.BoxID) == nil:
			return f.awake(ctx, sb)
		case try == moveTries:
			return store.Sandbox{}, unknownMove(p, sb.ID, "resumed", err)
		}
		if !sleep(ctx, time.Duration(try)*100*time.Millisecond) {
			return store.Sandbox{}, unknownMove(p, sb.ID, "resumed", err)
		}
	}
}

// awake notes that the sandbox runs: its clock starts anew.
func (f *Fleet) awake(ctx context.Context, sb store.Sandbox) (store.Sandbox, error) {
	if sb.PauseLevel == string(adapters.LevelFilesystem) { // its envd is a new one
		if err := f.store.Logs.JournalAnew(ctx, sb.TeamID, sb.ID); err != nil {
			f.log.Warn("resume: the journal cannot be begun anew", "sandbox", sb.ID, "err", err)
		}
	}
	running, err := f.store.Sandboxes.Change(ctx, sb.ID, func(record *store.Sandbox) error {
		if record.State != store.StateResuming {
			return errMoved
		}
		record.State, record.StartedAt = store.StateRunning, now()
		record.EndAt = record.StartedAt.Add(min(cmp.Or(record.ResumeFor, record.Timeout, leastWake), f.longestLife(*record)))
		record.PauseLevel, record.ResumeFor = "", 0
		return nil
	})
	if err != nil {
		return store.Sandbox{}, storeError(sb.ID, err)
	}
	if _, err := f.open(ctx, running); err != nil {
		return store.Sandbox{}, f.lost(sb.ID, err)
	}
	f.wakeReaper()
	f.note(ctx, running, "sandbox resumed", map[string]string{"end_at": running.EndAt.Format(time.RFC3339)})
	f.log.Info("sandbox resumed", "sandbox", sb.ID)
	return running, nil
}

// sleepOn takes the claim of a resume back that came to nothing.
func (f *Fleet) sleepOn(ctx context.Context, sb store.Sandbox, cause error) (store.Sandbox, error) {
	_, err := f.store.Sandboxes.Change(ctx, sb.ID, func(record *store.Sandbox) error {
		if record.State != store.StateResuming {
			return errMoved
		}
		record.State, record.ResumeFor = store.StatePaused, 0
		return nil
	})
	if err != nil {
		return store.Sandbox{}, storeError(sb.ID, err)
	}
	return store.Sandbox{}, cause
}

// isLost reports whether nothing of a box is left that could run again.
func isLost(box adapters.Box, err error) bool {
	if err != nil {
		return adapters.KindOf(err) == adapters.KindNotFound
	}
	return !box.Alive
}

// unknownMove is the answer while a place does not say what became of a pause or a resume.
func unknownMove(p *pool, id, what string, cause error) error {
	message := "pool " + p.name + " does not say whether sandbox " + id + " was " + what + ". It is looked up again: try again in a moment"
	if adapters.MisreadOf(cause) != nil {
		message += ". " + cause.Error()
	}
	return adapters.Wrap(adapters.KindUnknownOutcome, cause, message)
}

// unsupported is the refusal of what a sandbox's pool cannot do.
func unsupported(format string, args ...any) *adapters.Error {
	err := adapters.Errorf(adapters.KindUnsupported, format, args...)
	err.Code = "unsupported_field"
	return err
}
