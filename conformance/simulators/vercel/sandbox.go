//go:build linux

package vercel

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// sandbox is one name of the project. Its fields are guarded by the server's mu; boots and stops of one sandbox
// follow each other by changing.
type sandbox struct {
	changing sync.Mutex

	info    Sandbox
	env     map[string]string
	ports   []int
	routes  []Route
	policy  Policy
	source  Source
	current *session
	deleted bool
}

// session is one boot of a sandbox. info and commands are guarded by the server's mu.
type session struct {
	server  *Server
	sandbox *sandbox
	box     *machine.Box
	ended   chan struct{} // closed when no command can run any more

	info     Session
	timer    *time.Timer
	commands map[string]*command
	order    []*command
}

// view is the answer about a sandbox and its session.
type view struct {
	Sandbox Sandbox `json:"sandbox"`
	Session Session `json:"session"`
	Routes  []Route `json:"routes"`
	Resumed bool    `json:"resumed,omitempty"`
}

// show makes the answer; mu is held.
func (s *Server) show(b *sandbox) view {
	return view{Sandbox: b.info.clone(), Session: b.current.info, Routes: append([]Route{}, b.routes...)}
}

// find returns a sandbox by its name; mu is held.
func (s *Server) find(name string) (*sandbox, error) {
	if b := s.sandboxes[name]; b != nil && b.current != nil {
		return b, nil
	}
	return nil, notFound("The sandbox " + name)
}

// sessionOf returns the session of a request; mu is not held.
func (s *Server) sessionOf(r *http.Request) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.sessions[r.PathValue("id")]; one != nil {
		return one, nil
	}
	return nil, notFound("The session")
}

// running returns the session of a request when commands can run in it.
func (s *Server) running(r *http.Request) (*session, error) {
	one, err := s.sessionOf(r)
	if err != nil {
		return nil, err
	}
	return one, one.ready()
}

// ready says why no commands can run in the session, if so.
func (one *session) ready() error {
	one.server.mu.Lock()
	defer one.server.mu.Unlock()
	switch one.info.Status {
	case statusRunning:
		return nil
	case statusStopping, statusPending:
		return fail(http.StatusUnprocessableEntity, "sandbox_stopping", "The sandbox is changing its state.")
	case statusSnapshotting:
		return fail(http.StatusUnprocessableEntity, "sandbox_snapshotting", "The sandbox is making a snapshot.")
	}
	return stopped()
}

// boot starts a session of a sandbox, whose changing is held. from is the snapshot; empty: the image.
func (s *Server) boot(b *sandbox, from string) error {
	one, spec, err := s.begin(b, from)
	if err != nil {
		return err
	}
	box, err := s.config.Cloud.Create(s.life, spec)
	if err == nil {
		err = s.furnish(box, b, from == "")
	}
	if err == nil {
		err = s.mount(s.life, box, b)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if err != nil {
		one.info.Status, one.info.StoppedAt = statusFailed, milliseconds(now)
		b.info.Status = statusFailed
		close(one.ended)
		if box != nil {
			_ = box.Destroy(context.WithoutCancel(s.life))
		}
		return fmt.Errorf("boot a session: %w", err)
	}
	one.box = box
	one.info.Status, one.info.StartedAt, one.info.UpdatedAt = statusRunning, milliseconds(now), milliseconds(now)
	b.info.Status, b.info.StatusUpdatedAt = statusRunning, milliseconds(now)
	one.expireIn(time.Duration(one.info.Timeout) * time.Millisecond)
	s.work.Go(one.watch)
	return nil
}

// begin takes the quota and notes the session that is about to start.
func (s *Server) begin(b *sandbox, from string) (*session, machine.Spec, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if err := s.quota.take(now, s.runningSessions(), b.info.VCPUs); err != nil {
		return nil, machine.Spec{}, err
	}
	spec := machine.Spec{
		Name: newID(""), CPU: b.info.VCPUs, MemoryMB: b.info.Memory, DiskMB: s.config.DiskMB,
		Network: b.policy.network(), Image: s.machineImage(b.info.Image), Env: b.env,
	}
	if from != "" {
		copied, err := s.usable(from)
		if err != nil {
			return nil, machine.Spec{}, err
		}
		copied.info.LastUsedAt = milliseconds(now)
		spec.From = copied.copy
	}
	one := &session{
		server: s, sandbox: b, ended: make(chan struct{}), commands: map[string]*command{},
		info: Session{
			ID: newID("sbx_"), SandboxName: b.info.Name, ProjectID: s.config.Project, Memory: b.info.Memory, VCPUs: b.info.VCPUs,
			Region: b.info.Region, Runtime: b.info.Runtime, Timeout: b.info.Timeout, Status: statusPending, CWD: workdir,
			RequestedAt: milliseconds(now), CreatedAt: milliseconds(now), UpdatedAt: milliseconds(now), SnapshotID: from,
			NetworkPolicy: b.policy.answer(),
		},
	}
	b.current, s.sessions[one.info.ID] = one, one
	b.info.CurrentSessionID, b.info.Status = one.info.ID, statusPending
	return one, spec, nil
}

// runningSessions counts those that the plan counts; mu is held.
func (s *Server) runningSessions() int {
	n := 0
	for _, one := range s.sessions {
		switch one.info.Status {
		case statusStopped, statusFailed:
		default:
			n++
		}
	}
	return n
}

// furnish makes the working folder of a new box and fills it with the source.
func (s *Server) furnish(box *machine.Box, b *sandbox, fresh bool) error {
	if !fresh {
		return nil
	}
	script := fmt.Sprintf("mkdir -p %s && chown %s: %[1]s", workdir, s.config.User)
	if code, err := runToEnd(s.life, box, machine.Command{Argv: []string{"/bin/sh", "-c", script}}); err != nil || code != 0 {
		return fmt.Errorf("make the working folder: exit %d: %w", code, err)
	}
	argv := b.source.command()
	if argv == nil {
		return nil
	}
	code, err := runToEnd(s.life, box, machine.Command{Argv: argv, Dir: workdir, User: s.config.User, Env: b.source.env()})
	if err == nil && code != 0 {
		err = badRequest("The source could not be fetched.")
	}
	return err
}

// watch notices when a box ends by itself.
func (one *session) watch() {
	select {
	case <-one.box.Ended():
		_, _ = one.halt(context.WithoutCancel(one.server.life), false)
	case <-one.ended:
	}
}

// expireIn sets when the session's time is over; mu is held.
func (one *session) expireIn(left time.Duration) {
	if one.timer != nil {
		one.timer.Stop()
	}
	one.timer = time.AfterFunc(left, func() { _, _ = one.halt(context.WithoutCancel(one.server.life), one.persistent()) })
}

func (one *session) persistent() bool {
	one.server.mu.Lock()
	defer one.server.mu.Unlock()
	return one.sandbox.info.Persistent
}
