package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"connectrpc.com/connect"

	"github.com/isthmus/isthmus/envd/daemon/identity"
	"github.com/isthmus/isthmus/envd/daemon/spawn"
	"github.com/isthmus/isthmus/envd/daemon/stack"
	wire "github.com/isthmus/isthmus/envd/process"
)

// Start runs a program as the request's user and streams its events. The stream's time limit is the
// program's too.
func (s *Service) Start(ctx context.Context, req *connect.Request[wire.StartRequest], out *connect.ServerStream[wire.StartResponse]) error {
	if err := ctx.Err(); err != nil {
		return ended(err)
	}
	user, err := identity.From(ctx)
	if err != nil {
		return err
	}
	deadline, _ := ctx.Deadline()
	var started *started
	stack.Apart(func() { started, err = s.launch(ctx, user, req.Msg, deadline) })
	if err != nil {
		return err
	}
	defer started.events.leave()
	return stream(ctx, started.pid, started.events, keepalive(req.Header()), func(e *wire.ProcessEvent) error {
		return out.Send(&wire.StartResponse{Event: e})
	})
}

// started is a process with its first subscriber, which has missed nothing.
type started struct {
	pid    uint32
	events *subscriber
}

// launch starts the program. A program that cannot be executed is not an error: it becomes a process that says
// so on its standard error and has exited, as a shell makes it.
func (s *Service) launch(ctx context.Context, user identity.User, msg *wire.StartRequest, deadline time.Time) (*started, error) {
	p := &plan{msg: msg, user: user, credential: s.credential(user)}
	if err := s.prepare(p); err != nil {
		return nil, err
	}
	if p.failure != nil {
		return s.neverRan(ctx, p), nil
	}
	r, err := s.open(p)
	if err != nil {
		return nil, connect.NewError(connect.CodeInternal, err)
	}
	r.child, err = s.config.Reaper.Start(p.command)
	for _, f := range p.command.Stdio {
		_ = f.Close()
	}
	if err != nil {
		r.release()
		if p.failure = p.executionFailure(err); p.failure != nil {
			return s.neverRan(ctx, p), nil
		}
		return nil, p.refusal(err)
	}
	r.pid = uint32(r.child.PID)
	events := r.out.subscribe(ctx)
	s.table.add(r)
	s.config.Journal.Info("process started", "pid", strconv.Itoa(r.child.PID), "cmd", p.text(), "user", user.Name)
	s.follow(r, deadline)
	return &started{pid: r.pid, events: events}, nil
}

// credential is what makes a process the user's; nil when the daemon is that ordinary user itself.
func (s *Service) credential(user identity.User) *syscall.Credential {
	if user.UID != 0 && os.Geteuid() == int(user.UID) {
		return nil
	}
	return &syscall.Credential{Uid: user.UID, Gid: user.GID, Groups: user.Groups, NoSetGroups: s.noGroups}
}

// plan is a start that is being prepared.
type plan struct {
	msg        *wire.StartRequest
	user       identity.User
	credential *syscall.Credential
	command    spawn.Command
	// failure is why the program cannot be executed, when that is known already.
	failure error
}

// text is the command as one line, for errors and the journal.
func (p *plan) text() string {
	config := p.msg.GetProcess()
	return strings.Join(append([]string{config.GetCmd()}, config.GetArgs()...), " ")
}

// prepare finds folder, environment and executable.
func (s *Service) prepare(p *plan) error {
	config := p.msg.GetProcess()
	dir, err := p.user.Expand(config.GetCwd(), s.config.Users.Workdir())
	if err != nil {
		return connect.NewError(connect.CodeInvalidArgument, err)
	}
	env, path := s.environment(p.user, config.GetEnvs())
	p.command = spawn.Command{
		Args: append([]string{config.GetCmd()}, config.GetArgs()...),
		Env:  env, Dir: dir, Credential: p.credential, Terminal: p.msg.GetPty() != nil,
	}
	if err := p.tooLong(); err != nil {
		return connect.NewError(connect.CodeInvalidArgument, err)
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("cwd '%s' does not exist", dir))
	}
	if !spawn.Searchable(dir, p.credential) {
		return p.refusal(p.unenterable())
	}
	p.command.Path, p.failure = spawn.Look(config.GetCmd(), path, dir)
	return nil
}

// unenterable is the kernel's reason why the user cannot enter the folder.
func (p *plan) unenterable() error {
	if info, err := os.Stat(p.command.Dir); err != nil || !info.IsDir() {
		return syscall.ENOTDIR
	}
	return syscall.EACCES
}

// executionFailure tells whether a failed start was the program's fault, which its exit code then says, or
// something that the request or the machine must answer for.
func (p *plan) executionFailure(err error) error {
	switch {
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.EACCES), errors.Is(err, syscall.ENOTDIR),
		errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ETXTBSY), errors.Is(err, syscall.EISDIR),
		errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.ELIBBAD):
		return err
	}
	return nil
}

// refusal words a start that the kernel refused, as upstream does.
func (p *plan) refusal(err error) error {
	if errors.Is(err, syscall.E2BIG) {
		return connect.NewError(connect.CodeInvalidArgument, p.tooMuch())
	}
	err = &os.PathError{Op: "fork/exec", Path: p.command.Args[0], Err: err}
	if pty := p.msg.GetPty(); pty != nil {
		err = fmt.Errorf("error starting pty with command '%s' in dir '%s' with '%d' cols and '%d' rows: %w",
			p.text(), p.command.Dir, pty.GetSize().GetCols(), pty.GetSize().GetRows(), err)
	} else {
		err = fmt.Errorf("error starting process '%s': %w", p.text(), err)
	}
	return connect.NewError(connect.CodeInvalidArgument, err)
}
