package modal

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/google/uuid"
	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/isthmus/isthmus/adapters"
)

const (
	// longestArguments is how much a command line may have, in bytes.
	longestArguments = 1 << 16
	// longestWrite is what one message of input holds, in bytes.
	longestWrite = 4 << 20
	// waitTime is how long one question for the end of a program takes, closeTime bounds the letting go of one.
	waitTime  = 50 * time.Second
	closeTime = 5 * time.Second
)

// Exec starts a program in a box. Its id is ours, so that starting it twice is starting it once.
func (p *Provider) Exec(ctx context.Context, boxID string, argv []string) (adapters.Execution, error) {
	return p.exec(ctx, boxID, argv, 0)
}

// exec starts a program, which Modal ends after the limit; 0: there is none.
func (p *Provider) exec(ctx context.Context, boxID string, argv []string, limit time.Duration) (*execution, error) {
	length := 0
	for _, arg := range argv {
		length += len(arg)
	}
	if length > longestArguments {
		return nil, adapters.Errorf(adapters.KindInvalid,
			"the command line has %d bytes and Modal takes %d: bring what is long in a file, or by the program's input", length, longestArguments)
	}
	r, err := p.routerOf(ctx, boxID)
	if err != nil {
		return nil, p.forgetGone(boxID, err)
	}
	start := pb.TaskExecStartRequest_builder{
		TaskId: r.known.task, ExecId: uuid.NewString(), CommandArgs: argv,
		StdoutConfig: pb.TaskExecStdoutConfig_TASK_EXEC_STDOUT_CONFIG_PIPE, StderrConfig: pb.TaskExecStderrConfig_TASK_EXEC_STDERR_CONFIG_STDOUT,
	}
	if limit > 0 {
		seconds := uint32((limit + time.Second - 1) / time.Second) // Modal counts whole ones
		start.TimeoutSecs = &seconds
	}
	request := start.Build()
	err = r.do(ctx, callTime, func(ctx context.Context) error {
		_, err := r.stub.TaskExecStart(ctx, request)
		return err
	})
	switch adapters.KindOf(err) {
	case adapters.KindInvalid:
		return nil, adapters.Wrap(adapters.KindPrecondition, err, "the program "+argv[0]+" cannot be started in the sandbox")
	case adapters.KindNotFound:
		return nil, p.forgetGone(boxID, err)
	}
	if err != nil {
		return nil, err
	}
	life, letGo := context.WithCancel(context.WithoutCancel(ctx))
	return &execution{router: r, id: request.GetExecId(), life: life, letGo: letGo}, nil
}

// forgetGone forgets a box of which it became known that it is gone.
func (p *Provider) forgetGone(boxID string, err error) error {
	if err != nil && adapters.KindOf(err) == adapters.KindNotFound {
		p.forget(boxID)
	}
	return err
}

// execution is one program in a box. What it says is read by offset, and what it is told is written by offset, so
// that a connection that breaks loses nothing.
type execution struct {
	router *router
	id     string
	life   context.Context
	letGo  context.CancelFunc

	read   uint64
	stream grpc.ServerStreamingClient[pb.TaskExecStdioReadResponse]
	rest   []byte

	in      sync.Mutex
	written uint64
	closed  bool
}

// Read reads what the program says.
func (e *execution) Read(b []byte) (int, error) {
	wait := routerWait
	for try := 0; len(e.rest) == 0; try++ {
		err := e.receive()
		if err == nil {
			continue
		}
		if errors.Is(err, io.EOF) {
			return 0, io.EOF
		}
		e.stream = nil
		switch {
		case e.life.Err() != nil:
			return 0, io.ErrClosedPipe
		case status.Code(err) == codes.Unauthenticated && try == 0:
			if err := e.router.renew(e.life); err != nil {
				return 0, err
			}
		case try >= routerTries || !transient(err):
			return 0, e.router.provider.lost(e.life, e.router.boxID, e.router.known, classify(e.life, err, false))
		case !sleep(e.life, wait):
			return 0, io.ErrClosedPipe
		}
		wait *= 2
	}
	n := copy(b, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// receive takes the next part, from where the last one ended.
func (e *execution) receive() (err error) {
	if e.stream == nil {
		e.stream, err = e.router.stub.TaskExecStdioRead(e.router.carry(e.life), pb.TaskExecStdioReadRequest_builder{
			TaskId: e.router.known.task, ExecId: e.id, Offset: e.read,
			FileDescriptor: pb.TaskExecStdioFileDescriptor_TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDOUT,
		}.Build())
		if err != nil {
			return err
		}
	}
	message, err := e.stream.Recv()
	if err != nil {
		return err
	}
	e.rest = message.GetData()
	e.read += uint64(len(e.rest))
	return nil
}

// Write tells the program something.
func (e *execution) Write(b []byte) (int, error) {
	e.in.Lock()
	defer e.in.Unlock()
	done := 0
	for done < len(b) {
		part := b[done:min(len(b), done+longestWrite)]
		if err := e.put(e.life, part, false); err != nil {
			return done, err
		}
		done += len(part)
	}
	return done, nil
}

// put writes at the offset. The caller holds the lock.
func (e *execution) put(ctx context.Context, data []byte, eof bool) error {
	err := e.router.do(ctx, callTime, func(ctx context.Context) error {
		_, err := e.router.stub.TaskExecStdinWrite(ctx, pb.TaskExecStdinWriteRequest_builder{
			TaskId: e.router.known.task, ExecId: e.id, Offset: e.written, Data: data, Eof: eof,
		}.Build())
		return err
	})
	if err == nil {
		e.written += uint64(len(data))
	}
	return err
}

// CloseWrite ends the program's input.
func (e *execution) CloseWrite() error {
	e.in.Lock()
	defer e.in.Unlock()
	return e.end(e.life)
}

func (e *execution) end(ctx context.Context) error {
	if e.closed {
		return nil
	}
	err := e.put(ctx, nil, true)
	e.closed = err == nil
	return err
}

// Wait returns how the program ended: 128 and the number of the signal when one ended it.
func (e *execution) Wait(ctx context.Context) (int, error) {
	for {
		code, ended := 0, false
		err := e.router.do(ctx, waitTime+callTime, func(ctx context.Context) error {
			bounded, cancel := context.WithTimeout(ctx, waitTime)
			defer cancel()
			answer, err := e.router.stub.TaskExecWait(bounded, pb.TaskExecWaitRequest_builder{TaskId: e.router.known.task, ExecId: e.id}.Build())
			if status.Code(err) == codes.DeadlineExceeded {
				return nil // it runs
			}
			switch {
			case answer.HasCode():
				code, ended = int(answer.GetCode()), true
			case answer.HasSignal():
				code, ended = 128+int(answer.GetSignal()), true
			}
			return err
		})
		if err != nil || ended {
			return code, err
		}
		if !sleep(ctx, firstWait) {
			return 0, ctx.Err()
		}
	}
}

// Close lets go of the program: its input and output end.
func (e *execution) Close() error {
	if e.life.Err() != nil {
		return nil
	}
	e.letGo()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.life), closeTime)
	defer cancel()
	e.in.Lock()
	defer e.in.Unlock()
	if err := e.end(ctx); err != nil {
		e.router.provider.log.Debug("the input of a program in a box could not be ended", "box", e.router.boxID, "err", err)
	}
	return nil
}

// endOfStream is the error of a stream, of which the end is none.
func endOfStream(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
