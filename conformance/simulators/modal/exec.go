//go:build linux

package modal

import (
	"context"
	"io"
	"maps"
	"strings"
	"sync"
	"syscall"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// longestArguments is how much a command line may have, in bytes.
const longestArguments = 1 << 16

func argumentBytes(args []string) int {
	n := 0
	for _, arg := range args {
		n += len(arg)
	}
	return n
}

// program is something that runs: a process of a box, or the cloud's own tool for files.
type program interface {
	Stdout() io.Reader
	Stderr() io.Reader
	Stdin() io.WriteCloser
	Wait(ctx context.Context) (machine.Exit, error)
	Signal(ctx context.Context, s syscall.Signal) error
	Close()
}

// execution is one program, also after its end.
type execution struct {
	program        program
	stdout, stderr *output
	ended          chan struct{}
	exit           machine.Exit // when it has ended
	timedOut       bool
	cancel         context.CancelFunc

	in      sync.Mutex // held while input is written
	written uint64
	closed  bool
}

// begin starts a process in a box.
func (s *Server) begin(ctx context.Context, box *machine.Box, command machine.Command) (*execution, error) {
	process, err := box.Start(ctx, command)
	if err != nil {
		return nil, err
	}
	return s.follow(process, 0, false), nil
}

// follow keeps what a program says, and how it ends. It is ended after the limit; 0: there is none. join has its
// errors come with its output.
func (s *Server) follow(p program, limit time.Duration, join bool) *execution {
	ctx, cancel := context.WithCancel(s.ctx)
	e := &execution{program: p, stdout: newOutput(), stderr: newOutput(), ended: make(chan struct{}), cancel: cancel}
	var reading sync.WaitGroup
	reading.Go(func() { e.stdout.fill(p.Stdout()) })
	reading.Go(func() { e.errors(join).fill(p.Stderr()) })
	s.work.Go(func() {
		reading.Wait()
		e.stdout.end()
		e.stderr.end()
	})
	s.work.Go(func() {
		defer close(e.ended)
		bounded, stop := ctx, context.CancelFunc(func() {})
		if limit > 0 {
			bounded, stop = context.WithTimeout(ctx, limit)
		}
		defer stop()
		exit, err := p.Wait(bounded)
		if err != nil {
			e.timedOut = bounded.Err() == context.DeadlineExceeded
			exit = machine.Exit{Signal: "SIGKILL"}
			if e.timedOut {
				_ = p.Signal(ctx, syscall.SIGKILL)
			}
			p.Close()
			e.stdout.drop()
			e.stderr.drop()
		}
		e.exit = exit
	})
	return e
}

// errors is where a program's errors come.
func (e *execution) errors(join bool) *output {
	if join {
		return e.stdout
	}
	return e.stderr
}

func (e *execution) over() bool {
	select {
	case <-e.ended:
		return true
	default:
		return false
	}
}

// close ends the program and everything that follows it.
func (e *execution) close() {
	e.cancel()
	e.program.Close()
	e.stdout.drop()
	e.stderr.drop()
	<-e.ended
}

// TaskExecStart starts a program. A second start of one id is the same one.
func (r *router) TaskExecStart(ctx context.Context, q *pb.TaskExecStartRequest) (*pb.TaskExecStartResponse, error) {
	sb, err := r.task(ctx, q.GetTaskId())
	if err != nil {
		return nil, err
	}
	if err := checkExec(q); err != nil {
		return nil, err
	}
	env, err := r.environment(q.GetSecretIds(), q.GetSecretSources(), q.GetEnv())
	if err != nil {
		return nil, err
	}
	sb.mu.Lock()
	box, there := sb.box, sb.execs[q.GetExecId()] != nil
	sb.mu.Unlock()
	switch {
	case there:
		return &pb.TaskExecStartResponse{}, nil
	case box == nil:
		return nil, status.Error(codes.NotFound, "the Task has finished")
	}
	e, err := r.launch(ctx, sb, box, q, env)
	if err != nil {
		return nil, err
	}
	if !sb.keep(q.GetExecId(), e) {
		e.close()
	}
	return &pb.TaskExecStartResponse{}, nil
}

func checkExec(q *pb.TaskExecStartRequest) error {
	switch {
	case q.GetExecId() == "":
		return status.Error(codes.InvalidArgument, "exec_id must be set")
	case len(q.GetCommandArgs()) == 0:
		return status.Error(codes.InvalidArgument, "the command is empty")
	case argumentBytes(q.GetCommandArgs()) > longestArguments:
		return status.Errorf(codes.InvalidArgument, "the arguments are longer than %d bytes", longestArguments)
	case q.GetWorkdir() != "" && !strings.HasPrefix(q.GetWorkdir(), "/"):
		return status.Error(codes.InvalidArgument, "workdir must be absolute")
	}
	return nil
}

// keep takes an execution into the sandbox's; false when there is one of this id, or the sandbox has ended.
func (sb *sandbox) keep(id string, e *execution) bool {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	if sb.box == nil || sb.execs[id] != nil {
		return false
	}
	sb.execs[id] = e
	return true
}

// touch notes that the sandbox is used.
func (sb *sandbox) touch() {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	sb.used = time.Now()
}

// launch starts what was asked for. A program that is not there is one that ends with 127 at once.
func (s *Server) launch(ctx context.Context, sb *sandbox, box *machine.Box, q *pb.TaskExecStartRequest, env map[string]string) (*execution, error) {
	limit := time.Duration(q.GetTimeoutSecs()) * time.Second
	args := q.GetCommandArgs()
	if args[0] == fileTool {
		return s.follow(newFileTool(s.ctx, box, args[1:]), limit, false), nil
	}
	all := maps.Clone(sb.env)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, env)
	command := machine.Command{Argv: args, Env: all, Dir: q.GetWorkdir(), Stdin: true}
	if pty := q.GetPtyInfo(); pty.GetEnabled() {
		command.PTY = &machine.Size{Rows: int(pty.GetWinszRows()), Cols: int(pty.GetWinszCols())}
		if pty.GetEnvTerm() != "" {
			all["TERM"] = pty.GetEnvTerm()
		}
	}
	process, err := box.Start(ctx, command)
	if ctx.Err() != nil {
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "the command could not be started: %v", err)
	}
	joined := q.GetStderrConfig() == pb.TaskExecStderrConfig_TASK_EXEC_STDERR_CONFIG_STDOUT
	e := s.follow(process, limit, joined)
	if q.GetStdoutConfig() == pb.TaskExecStdoutConfig_TASK_EXEC_STDOUT_CONFIG_DEVNULL && !q.GetPtyInfo().GetEnabled() {
		e.stdout.drop()
	}
	if q.GetStderrConfig() == pb.TaskExecStderrConfig_TASK_EXEC_STDERR_CONFIG_DEVNULL {
		e.stderr.drop()
	}
	return e, nil
}
