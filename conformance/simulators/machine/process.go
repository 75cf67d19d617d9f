//go:build linux

package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters"
	wire "github.com/isthmus/isthmus/envd/process"
	"github.com/isthmus/isthmus/envd/process/processconnect"
)

// Command is a program to be started.
type Command struct {
	// Argv is the program, looked up in PATH, and its arguments.
	Argv []string
	// Env are variables beside those of the box.
	Env map[string]string
	// Dir is the folder that it starts in; empty: the user's home. User is one of the box; empty: root.
	Dir, User string
	// PTY gives it a terminal; nil: pipes.
	PTY *Size
	// Stdin gives it an input; without one it reads nothing. A terminal always has one.
	Stdin bool
}

// Size is that of a terminal in character cells.
type Size struct{ Rows, Cols int }

// Exit is how a process ended.
type Exit struct {
	// Code is the exit code; -1 when a signal ended it.
	Code int
	// Signal is its name, for example SIGKILL; empty: it exited.
	Signal string
}

// Process is a program that was started in a box. Its outputs are to be read: of each a
// MiB is held, more holds the program up until it is read or the process let go of.
type Process struct {
	box            *Box
	pid            uint32
	pty            bool
	stdin          io.WriteCloser
	stdout, stderr *output
	ended          chan struct{}
	exit           Exit  // valid when ended is closed
	err            error // why it is not known how it ended
	// life ends when nothing is heard of the process any more.
	life  context.Context
	letGo context.CancelFunc
}

// firstPhantom is the smallest pid that the daemon gives to programs which could not be executed.
const firstPhantom = 1 << 22

// maxText bounds what is read of a message.
const maxText = 4 << 10

// Start starts a program. ctx bounds the starting only. KindPrecondition when it cannot be executed, KindInvalid when
// there is no such user or folder.
func (b *Box) Start(ctx context.Context, c Command) (*Process, error) {
	if len(c.Argv) == 0 {
		return nil, adapters.Errorf(adapters.KindInvalid, "a command has at least one word")
	}
	life, letGo := context.WithCancel(context.WithoutCancel(ctx))
	starting := context.AfterFunc(ctx, letGo)
	stream, err := b.processes().Start(life, b.request(c))
	if err == nil && !stream.Receive() {
		err = errors.Join(stream.Err(), stream.Close())
	}
	if err != nil {
		letGo()
		return nil, b.refused(ctx, err)
	}
	pid := stream.Msg().GetEvent().GetStart().GetPid()
	if pid >= firstPhantom {
		defer letGo()
		return nil, neverRan(c, stream)
	}
	if !starting() && ctx.Err() != nil {
		letGo()
		_ = b.signal(context.WithoutCancel(ctx), pid, syscall.SIGKILL)
		return nil, ctx.Err()
	}
	p := &Process{box: b, pid: pid, pty: c.PTY != nil, stdout: newOutput(), stderr: newOutput(), ended: make(chan struct{}), life: life, letGo: letGo}
	p.stdin = &input{process: p, none: c.PTY == nil && !c.Stdin}
	if !b.cloud.attend(func() { p.follow(stream) }) {
		letGo()
		return nil, adapters.Errorf(adapters.KindNotFound, "the box has ended")
	}
	return p, nil
}

// processes is the client of the daemon's process service.
func (b *Box) processes() processconnect.ProcessClient {
	return processconnect.NewProcessClient(b.client, daemonURL, connect.WithInterceptors(secret(b.transport)))
}

// secret adds the proof that a call is the cloud's.
func secret(transport string) connect.Interceptor { return &prover{transport} }

func (b *Box) request(c Command) *connect.Request[wire.StartRequest] {
	m := &wire.StartRequest{
		Process: &wire.ProcessConfig{Cmd: c.Argv[0], Args: c.Argv[1:], Envs: c.Env}, Stdin: &c.Stdin,
	}
	if c.Dir != "" {
		m.Process.Cwd = &c.Dir
	}
	if c.PTY != nil {
		m.Pty = c.PTY.wire()
	}
	request := connect.NewRequest(m)
	user := c.User
	if user == "" {
		user = "root"
	}
	basic := http.Request{Header: request.Header()}
	basic.SetBasicAuth(user, "")
	return request
}

func (s Size) wire() *wire.PTY {
	return &wire.PTY{Size: &wire.PTY_Size{Rows: uint32(s.Rows), Cols: uint32(s.Cols)}}
}

// neverRan says why a program could not be executed, in the daemon's words.
func neverRan(c Command, stream *connect.ServerStreamForClient[wire.StartResponse]) error {
	var said strings.Builder
	for stream.Receive() && said.Len() < maxText {
		data := stream.Msg().GetEvent().GetData()
		said.Write(data.GetStderr())
		said.Write(data.GetPty())
	}
	_ = stream.Close()
	return adapters.Errorf(adapters.KindPrecondition, "the program %s cannot be executed in the box: %s", c.Argv[0], strings.TrimSpace(said.String()))
}

// refused classifies an error of a call to the daemon.
func (b *Box) refused(ctx context.Context, err error) error {
	var answer *connect.Error
	if !errors.As(err, &answer) || ctx.Err() != nil {
		return b.broken(ctx, err)
	}
	switch answer.Code() {
	case connect.CodeInvalidArgument, connect.CodeUnauthenticated:
		return adapters.Wrap(adapters.KindInvalid, err, answer.Message())
	case connect.CodeNotFound:
		return adapters.Wrap(adapters.KindNotFound, err, answer.Message())
	}
	return b.broken(ctx, err)
}

// follow passes the output on until the process has ended or was let go of.
func (p *Process) follow(stream *connect.ServerStreamForClient[wire.StartResponse]) {
	defer p.letGo()
	defer context.AfterFunc(p.box.cloud.live, p.Close)()
	p.err = adapters.Errorf(adapters.KindNotFound, "it is not known how the process ended: its box did, or it was let go of")
	for stream.Receive() {
		event := stream.Msg().GetEvent()
		data := event.GetData()
		p.stdout.add(data.GetStdout())
		p.stdout.add(data.GetPty())
		p.stderr.add(data.GetStderr())
		if end := event.GetEnd(); end != nil {
			p.exit, p.err = exitOf(end), nil
		}
	}
	_ = stream.Close()
	close(p.ended)
	p.stdout.end()
	p.stderr.end()
}

// exitOf reads the daemon's word for the end.
func exitOf(end *wire.ProcessEvent_EndEvent) Exit {
	exit := Exit{Code: int(end.GetExitCode())}
	word, bySignal := strings.CutPrefix(end.GetStatus(), "signal: ")
	if !bySignal {
		return exit
	}
	word, _, _ = strings.Cut(word, " (core dumped)")
	exit.Signal = word
	for n := syscall.Signal(1); n < 65; n++ {
		if n.String() == word {
			exit.Signal = unix.SignalName(n)
		}
	}
	return exit
}

// PID is the process's id in the box.
func (p *Process) PID() int { return int(p.pid) }

// Stdout is the program's output, with a terminal all of it; Stderr its errors.
func (p *Process) Stdout() io.Reader { return p.stdout }

// Stderr is the program's error output.
func (p *Process) Stderr() io.Reader { return p.stderr }

// Stdin is the program's input; Close ends it.
func (p *Process) Stdin() io.WriteCloser { return p.stdin }

// Wait returns how the process ended, once its output is here. The error says that it is not known.
func (p *Process) Wait(ctx context.Context) (Exit, error) {
	select {
	case <-p.ended:
		return p.exit, p.err
	case <-ctx.Done():
		return Exit{}, ctx.Err()
	}
}

// Resize changes the size of the terminal.
func (p *Process) Resize(ctx context.Context, s Size) error {
	_, err := p.box.processes().Update(ctx, connect.NewRequest(&wire.UpdateRequest{Process: p.selector(), Pty: s.wire()}))
	if err != nil {
		return p.box.refused(ctx, err)
	}
	return nil
}

// Signal signals the process alone, not those that it started. KindNotFound when it has ended.
func (p *Process) Signal(ctx context.Context, s syscall.Signal) error {
	return p.box.signal(ctx, p.pid, s)
}

// signal has the box's own kill do it: the daemon knows two signals only.
func (b *Box) signal(ctx context.Context, pid uint32, s syscall.Signal) error {
	text, err := b.sh(ctx, `kill -"$1" "$2"`, strconv.Itoa(int(s)), strconv.FormatUint(uint64(pid), 10))
	if adapters.KindOf(err) == adapters.KindPrecondition {
		return adapters.Wrap(adapters.KindNotFound, err, fmt.Sprintf("there is no process %d to be signalled: %s", pid, text))
	}
	return err
}

// Close lets go of the process: its output is not read any more. The program runs on.
func (p *Process) Close() {
	p.letGo()
	p.stdout.close()
	p.stderr.close()
}

func (p *Process) selector() *wire.ProcessSelector {
	return &wire.ProcessSelector{Selector: &wire.ProcessSelector_Pid{Pid: p.pid}}
}
