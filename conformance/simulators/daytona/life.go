package daytona

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// change works on a sandbox in the background. begin has said that nothing else does.
func (s *Simulator) change(sb *sandbox, work func(ctx context.Context)) {
	sb.mu.Lock()
	sb.changing = true
	sb.mu.Unlock()
	s.work.Go(func() {
		work(s.ctx)
		sb.mu.Lock()
		sb.changing = false
		sb.mu.Unlock()
	})
}

// begin starts a change from one of some states to a desired one; a 409 while another change is under way.
func (s *Simulator) begin(r *http.Request, sb *sandbox, desired, through string, from ...string) error {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	if sb.changing {
		return conflict("Sandbox state change in progress")
	}
	allowed := false
	for _, state := range from {
		allowed = allowed || state == sb.facts.State
	}
	if !allowed {
		return invalid("Sandbox is not in a state that allows this: it is " + sb.facts.State)
	}
	if struck := faultOf(r.Context()); struck.is(FaultLying) {
		sb.shown, sb.shownUntil = sb.facts.State, time.Now().Add(struck.lasting())
	}
	sb.changing, sb.facts.DesiredState = true, desired
	sb.enter(through)
	return nil
}

// pass stays in a state for one step.
func (s *Simulator) pass(ctx context.Context, sb *sandbox, state string) {
	sb.setState(state)
	pause(ctx, s.config.Step)
}

// finish enters a state, or error when the work failed.
func (sb *sandbox) finish(state string, err error) {
	if err != nil {
		sb.fail(stateError, err.Error())
		return
	}
	sb.setState(state)
}

func (s *Simulator) stop(r *http.Request, sb *sandbox) (reply, error) {
	if err := s.begin(r, sb, stateStopped, stateStopping, stateStarted); err != nil {
		return reply{}, err
	}
	breaks := faultOf(r.Context()).is(FaultBreaks)
	s.change(sb, func(ctx context.Context) {
		if breaks {
			s.breakDown(ctx, sb)
		} else {
			s.stopNow(ctx, sb)
		}
	})
	return ok(sb.view(r))
}

// breakDown ends all processes too, and comes to an error of which the sandbox can be recovered with its files.
func (s *Simulator) breakDown(ctx context.Context, sb *sandbox) {
	sb.halt()
	sb.mu.Lock()
	box := sb.box
	sb.facts.Recoverable = true
	sb.mu.Unlock()
	if err := box.Stop(ctx); err != nil {
		s.log.Error("a sandbox could not be stopped", "sandbox", sb.facts.ID, "err", err)
	}
	sb.fail(stateError, "no space left on device")
}

// stopNow ends all processes; an ephemeral sandbox is destroyed then.
func (s *Simulator) stopNow(ctx context.Context, sb *sandbox) {
	pause(ctx, s.config.Step)
	sb.halt()
	sb.mu.Lock()
	box, ephemeral := sb.box, sb.facts.AutoDeleteInterval == 0
	sb.mu.Unlock()
	sb.finish(stateStopped, box.Stop(ctx))
	if ephemeral {
		s.destroyNow(ctx, sb)
	}
}

func (s *Simulator) pause(r *http.Request, sb *sandbox) (reply, error) {
	if sb.facts.SandboxClass != classVM {
		return reply{}, unsupported("Pause is not supported for sandbox class " + sb.facts.SandboxClass)
	}
	if err := s.begin(r, sb, statePaused, statePausing, stateStarted); err != nil {
		return reply{}, err
	}
	s.change(sb, func(ctx context.Context) {
		pause(ctx, s.config.Step)
		sb.finish(statePaused, freeze(ctx, sb.box))
	})
	return ok(sb.view(r))
}

func (s *Simulator) start(r *http.Request, sb *sandbox) (reply, error) {
	was := sb.state()
	through := map[string]string{statePaused: stateResuming, stateArchived: stateRestoring}[was]
	if through == "" {
		through = stateStarting
	}
	if err := s.begin(r, sb, stateStarted, through, stateStopped, statePaused, stateArchived); err != nil {
		return reply{}, err
	}
	s.change(sb, func(ctx context.Context) {
		pause(ctx, s.config.Step)
		var err error
		if was == statePaused {
			err = thaw(ctx, sb.box)
		} else {
			err = sb.box.Restart(ctx)
		}
		sb.touch()
		sb.finish(stateStarted, err)
	})
	return ok(sb.view(r))
}

func (s *Simulator) archive(r *http.Request, sb *sandbox) (reply, error) {
	if sb.facts.AutoDeleteInterval == 0 {
		return reply{}, invalid("Ephemeral sandboxes cannot be archived")
	}
	if err := s.begin(r, sb, stateArchived, stateArchiving, stateStopped); err != nil {
		return reply{}, err
	}
	s.change(sb, func(ctx context.Context) {
		pause(ctx, s.config.Step)
		sb.setState(stateArchived)
	})
	return ok(sb.view(r))
}

func (s *Simulator) recover(r *http.Request, sb *sandbox) (reply, error) {
	sb.mu.Lock()
	recoverable := sb.facts.State == stateError && sb.facts.Recoverable
	sb.mu.Unlock()
	if !recoverable {
		return reply{}, invalid("Sandbox is not recoverable")
	}
	if err := s.begin(r, sb, stateStarted, stateStarting, stateError); err != nil {
		return reply{}, err
	}
	sb.mu.Lock()
	sb.facts.Recoverable, sb.facts.ErrorReason = false, ""
	sb.mu.Unlock()
	s.change(sb, func(ctx context.Context) { sb.finish(stateStarted, sb.box.Restart(ctx)) })
	return ok(sb.view(r))
}

// resize changes the sizes that are shown: the machine keeps those that it was made with.
func (s *Simulator) resize(r *http.Request, sb *sandbox) (reply, error) {
	var n newSandbox
	if err := read(r, &n); err != nil {
		return reply{}, err
	}
	if err := s.config.Limits.check(&n); err != nil {
		return reply{}, err
	}
	was := sb.state()
	if err := s.begin(r, sb, was, stateResizing, stateStarted, stateStopped); err != nil {
		return reply{}, err
	}
	sb.mu.Lock()
	f := &sb.facts
	f.CPU, f.Memory, f.Disk = or(n.CPU, f.CPU), or(n.Memory, f.Memory), or(n.Disk, f.Disk)
	sb.mu.Unlock()
	s.change(sb, func(ctx context.Context) {
		pause(ctx, s.config.Step)
		sb.setState(was)
	})
	return ok(sb.view(r))
}

// destroy removes a sandbox in any state. Its name is free at once, its row only when nothing is left.
func (s *Simulator) destroy(r *http.Request, sb *sandbox) (reply, error) {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	if struck := faultOf(r.Context()); struck.is(FaultLying) {
		sb.shown, sb.shownUntil = sb.facts.State, time.Now().Add(struck.lasting())
	}
	f := sb.facts
	f.ToolboxProxyURL = "http://" + r.Host + "/toolbox"
	if sb.gone {
		return ok(f)
	}
	if sb.changing {
		return reply{}, conflict("Sandbox state change in progress")
	}
	sb.gone, sb.changing = true, true
	sb.facts.DesiredState, sb.facts.Name = stateDestroyed, "DESTROYED_"+f.Name+"_"+strconv.FormatInt(time.Now().UnixMilli(), 10)
	sb.enter(stateDestroying)
	f.State, f.DesiredState = stateDestroying, stateDestroyed
	s.work.Go(func() { s.destroyNow(s.ctx, sb) })
	return ok(f)
}

func (s *Simulator) destroyNow(ctx context.Context, sb *sandbox) {
	sb.setState(stateDestroying)
	pause(ctx, s.config.Step)
	if err := sb.remove(context.WithoutCancel(ctx)); err != nil {
		s.log.Error("a sandbox could not be destroyed", "sandbox", sb.facts.ID, "err", err)
	}
	sb.setState(stateDestroyed)
	s.mu.Lock()
	delete(s.sandboxes, sb.facts.ID)
	s.mu.Unlock()
}

func (s *Simulator) get(r *http.Request, sb *sandbox) (reply, error) { return ok(sb.view(r)) }

func (s *Simulator) stateOf(r *http.Request, sb *sandbox) (reply, error) {
	f := sb.view(r)
	return ok(map[string]any{"state": f.State, "desiredState": f.DesiredState})
}
