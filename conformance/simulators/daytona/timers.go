package daytona

import (
	"net/http"
	"strconv"
	"time"
)

// setTTL sets how long the sandbox lives at most, in minutes since it was made; 0: no bound.
func (sb *sandbox) setTTL(minutes int, minute time.Duration) {
	sb.ttl, sb.facts.AutoDestroyAt = minutes, ""
	if minutes > 0 {
		sb.facts.AutoDestroyAt = sb.facts.CreatedAt.Add(time.Duration(minutes) * minute).Format(time.RFC3339Nano)
	}
}

// setTimer sets one of the timers.
func (s *Simulator) setTimer(r *http.Request, sb *sandbox) (reply, error) {
	minutes, err := strconv.Atoi(r.PathValue("minutes"))
	if err != nil {
		return reply{}, invalid("Validation failed (numeric string is expected)")
	}
	sb.mu.Lock()
	switch timer := r.PathValue("timer"); {
	case timer == "autodelete":
		sb.facts.AutoDeleteInterval = minutes
	case minutes < 0:
		err = invalid("The interval must be non-negative")
	case timer == "autostop":
		sb.facts.AutoStopInterval = minutes
	case timer == "autopause" && sb.facts.SandboxClass != classVM:
		err = unsupported("Auto-pause is not supported for sandbox class " + sb.facts.SandboxClass)
	case timer == "autopause":
		sb.facts.AutoPauseInterval = minutes
	case timer == "autoarchive":
		sb.facts.AutoArchiveInterval = minutes
	case timer == "ttl":
		sb.setTTL(minutes, s.config.Minute)
	default:
		err = notFound("Cannot POST " + r.URL.Path)
	}
	sb.mu.Unlock()
	if err != nil {
		return reply{}, err
	}
	return ok(sb.view(r))
}

func (s *Simulator) touch(_ *http.Request, sb *sandbox) (reply, error) {
	sb.touch()
	return reply{status: http.StatusOK}, nil
}

// keepTime does what timers say until the simulator is closed.
func (s *Simulator) keepTime() {
	ticker := time.NewTicker(min(s.config.Minute/20, time.Second))
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.mu.Lock()
			all := make([]*sandbox, 0, len(s.sandboxes))
			for _, sb := range s.sandboxes {
				all = append(all, sb)
			}
			s.mu.Unlock()
			for _, sb := range all {
				s.expire(sb)
			}
		case <-s.ctx.Done():
			return
		}
	}
}

// expire starts what a sandbox's timers say.
func (s *Simulator) expire(sb *sandbox) {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	if sb.changing || sb.gone {
		return
	}
	passed := func(since time.Time, minutes int) bool {
		return time.Since(since) >= time.Duration(minutes)*s.config.Minute
	}
	f := &sb.facts
	switch {
	case sb.ttl > 0 && passed(f.CreatedAt, sb.ttl),
		f.State == stateStopped && f.AutoDeleteInterval > 0 && passed(sb.stoppedAt, f.AutoDeleteInterval):
		sb.gone, sb.changing, f.DesiredState = true, true, stateDestroyed
		s.work.Go(func() { s.destroyNow(s.ctx, sb) })
	case f.State == stateStarted && f.AutoStopInterval > 0 && passed(f.LastActivityAt, f.AutoStopInterval):
		sb.changing, f.DesiredState = true, stateStopped
		sb.enter(stateStopping)
		s.work.Go(func() {
			s.stopNow(s.ctx, sb)
			sb.mu.Lock()
			sb.changing = false
			sb.mu.Unlock()
		})
	case f.State == stateStopped && f.AutoArchiveInterval > 0 && passed(sb.stoppedAt, f.AutoArchiveInterval):
		sb.changing, f.DesiredState = true, stateArchived
		sb.enter(stateArchiving)
		s.work.Go(func() {
			pause(s.ctx, s.config.Step)
			sb.setState(stateArchived)
			sb.mu.Lock()
			sb.changing = false
			sb.mu.Unlock()
		})
	}
}
