//go:build linux

package vercel

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// get answers one sandbox. With resume=true it boots a stopped one, and that is billed.
func (s *Server) get(r *http.Request) (any, error) {
	s.mu.Lock()
	b, err := s.find(r.PathValue("name"))
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	resumed := false
	if r.URL.Query().Get("resume") == "true" {
		if resumed, err = s.resume(b); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := s.show(b)
	answer.Resumed = resumed
	return answer, nil
}

// resume boots a stopped sandbox that is persistent.
func (s *Server) resume(b *sandbox) (bool, error) {
	b.changing.Lock()
	defer b.changing.Unlock()
	s.mu.Lock()
	status, from, persistent := b.info.Status, b.info.CurrentSnapshotID, b.info.Persistent
	s.mu.Unlock()
	switch {
	case status == statusRunning:
		return false, nil
	case !persistent && from == "":
		return false, stopped()
	}
	return true, s.boot(b, from)
}

// stop ends a session. A persistent sandbox keeps its files as a snapshot, any other loses them.
func (s *Server) stop(r *http.Request) (any, error) {
	one, err := s.sessionOf(r)
	if err != nil {
		return nil, err
	}
	kept, err := one.halt(context.WithoutCancel(r.Context()), one.persistent())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := map[string]any{"session": one.info, "sandbox": one.sandbox.info.clone()}
	if kept != nil {
		answer["snapshot"] = kept.info
	}
	return answer, nil
}

// halt ends the session, once. keep makes a snapshot first, which becomes the sandbox's current one.
func (one *session) halt(ctx context.Context, keep bool) (*snapshot, error) {
	one.sandbox.changing.Lock()
	defer one.sandbox.changing.Unlock()
	return one.haltNow(ctx, keep, nil, "automatic")
}

// haltNow is halt with the sandbox's changing held; life is how long a snapshot is kept, nil: as the sandbox says.
func (one *session) haltNow(ctx context.Context, keep bool, life *int64, method string) (*snapshot, error) {
	s := one.server
	s.mu.Lock()
	if one.info.Status != statusRunning {
		s.mu.Unlock()
		return nil, nil
	}
	one.setStatus(statusStopping)
	if keep {
		one.setStatus(statusSnapshotting)
	}
	one.info.RequestedStop = milliseconds(time.Now())
	one.timer.Stop()
	s.mu.Unlock()

	if err := s.unmount(ctx, one); err != nil {
		s.log.Error("what a session wrote to its drives is lost", "session", one.info.ID, "err", err)
	}
	var kept *snapshot
	var err error
	if keep {
		if kept, err = s.keep(ctx, one, life, method); err != nil {
			err = errors.Join(err, s.mount(ctx, one.box, one.sandbox))
			s.mu.Lock()
			defer s.mu.Unlock()
			one.setStatus(statusRunning)
			one.expireIn(time.Minute)
			return nil, fmt.Errorf("make a snapshot: %w", err)
		}
	}
	usage, _ := one.box.Usage(ctx)
	err = one.box.Destroy(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	one.account(usage.CPUTime)
	one.setStatus(statusStopped)
	one.info.StoppedAt = milliseconds(time.Now())
	close(one.ended)
	return kept, err
}

// setStatus notes the state of a session that is the current one; mu is held.
func (one *session) setStatus(status string) {
	now := milliseconds(time.Now())
	one.info.Status, one.info.UpdatedAt = status, now
	if one.sandbox.current == one {
		one.sandbox.info.Status, one.sandbox.info.StatusUpdatedAt = status, now
	}
}

// account notes what the session used; mu is held.
func (one *session) account(cpu time.Duration) {
	used := cpu.Milliseconds()
	one.info.ActiveCPU, one.info.Transfer = &used, &Transfer{}
	one.info.Duration = milliseconds(time.Now()) - one.info.StartedAt
	one.sandbox.info.TotalCPU += used
	one.sandbox.info.TotalDuration += one.info.Duration
}

// destroy ends the session without a snapshot.
func (one *session) destroy(ctx context.Context) error {
	_, err := one.halt(ctx, false)
	return err
}

// remove ends a sandbox and its name.
func (s *Server) remove(r *http.Request) (any, error) {
	s.mu.Lock()
	b, err := s.find(r.PathValue("name"))
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	b.changing.Lock()
	defer b.changing.Unlock()
	if _, err := b.current.haltNow(context.WithoutCancel(r.Context()), false, nil, ""); err != nil {
		return nil, err
	}
	s.forget(b)
	if r.URL.Query().Get("deleteOrphanSnapshots") == "true" {
		if err := s.dropSnapshotsOf(b); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return map[string]any{"sandbox": b.info.clone()}, nil
}

// extend adds to the time-out of a running session.
func (s *Server) extend(r *http.Request) (any, error) {
	var body struct {
		Duration int64 `json:"duration"`
	}
	if err := read(r, &body); err != nil {
		return nil, err
	}
	one, err := s.running(r)
	if err != nil {
		return nil, err
	}
	if body.Duration < minTimeout.Milliseconds() {
		return nil, fail(http.StatusBadRequest, "sandbox_timeout_invalid", "The duration must be at least 1000 milliseconds.")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.info.Timeout+body.Duration > s.config.Plan.MaxLife.Milliseconds() {
		return nil, fail(http.StatusBadRequest, "sandbox_timeout_invalid",
			fmt.Sprintf("The timeout of this plan is at most %d milliseconds.", s.config.Plan.MaxLife.Milliseconds()))
	}
	one.info.Timeout += body.Duration
	one.info.UpdatedAt = milliseconds(time.Now())
	one.expireIn(time.Until(time.UnixMilli(one.info.StartedAt + one.info.Timeout)))
	return map[string]any{"session": one.info}, nil
}

// update changes a sandbox. Tags and ports change at once, the rest at the next session.
func (s *Server) update(r *http.Request) (any, error) {
	var body newSandbox
	if err := read(r, &body); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.find(r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	if body.CurrentSnapshot != nil {
		if _, err := s.usable(*body.CurrentSnapshot); err != nil {
			return nil, err
		}
	}
	body.Image, body.Runtime, body.Source = nil, nil, nil
	changed := &sandbox{info: b.info.clone(), env: b.env, ports: b.ports, policy: b.policy, source: b.source}
	if err := s.settle(changed, body); err != nil {
		return nil, err
	}
	put(&changed.info.CurrentSnapshotID, body.CurrentSnapshot)
	b.info, b.env, b.ports, b.policy = changed.info, changed.env, changed.ports, changed.policy
	if body.Ports != nil {
		s.setRoutes(b)
	}
	return map[string]any{"sandbox": b.info.clone(), "routes": append([]Route{}, b.routes...)}, nil
}

// fork makes a sandbox like another one, of its current snapshot.
func (s *Server) fork(r *http.Request) (any, error) {
	if r.PathValue("action") != "fork" {
		return nil, notFound("The endpoint")
	}
	var body newSandbox
	if err := read(r, &body); err != nil {
		return nil, err
	}
	s.mu.Lock()
	b, err := s.find(r.PathValue("name"))
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	body = b.like(body)
	s.mu.Unlock()
	return s.make(body)
}

// like fills what a fork takes over; mu is held.
func (b *sandbox) like(body newSandbox) newSandbox {
	over := func(set bool, take func()) {
		if !set {
			take()
		}
	}
	info, policy, ports := b.info.clone(), b.policy, append([]int{}, b.ports...)
	over(body.Ports != nil, func() { body.Ports = &ports })
	over(body.Timeout != nil, func() { body.Timeout = &info.Timeout })
	over(body.Resources != nil, func() { body.Resources = &resources{VCPUs: info.VCPUs} })
	over(body.Persistent != nil, func() { body.Persistent = &info.Persistent })
	over(body.NetworkPolicy != nil, func() { body.NetworkPolicy = &policy })
	over(body.Env != nil, func() { body.Env = b.env })
	over(body.Tags != nil, func() { body.Tags = info.Tags })
	over(body.Region != nil, func() { body.Region = &info.Region })
	over(body.SnapshotExpires != nil, func() { body.SnapshotExpires = info.SnapshotExpires })
	over(body.KeepLast != nil, func() { body.KeepLast = info.KeepLast })
	over(body.Image != nil || info.Image == "", func() { body.Image = &info.Image })
	if info.CurrentSnapshotID != "" {
		body.Source = &Source{Type: "snapshot", SnapshotID: info.CurrentSnapshotID}
	}
	return body
}
