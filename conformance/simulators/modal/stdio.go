//go:build linux

package modal

import (
	"context"
	"errors"
	"io"
	"syscall"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// exec finds an execution.
func (r *router) exec(ctx context.Context, task, id string) (*execution, error) {
	sb, err := r.task(ctx, task)
	if err != nil {
		return nil, err
	}
	sb.mu.Lock()
	defer sb.mu.Unlock()
	if e := sb.execs[id]; e != nil {
		return e, nil
	}
	return nil, status.Errorf(codes.NotFound, "Exec '%s' not found", id)
}

// TaskExecStdioRead sends what a program says from an offset on, until it has ended.
func (r *router) TaskExecStdioRead(q *pb.TaskExecStdioReadRequest, stream grpc.ServerStreamingServer[pb.TaskExecStdioReadResponse]) error {
	e, err := r.exec(stream.Context(), q.GetTaskId(), q.GetExecId())
	if err != nil {
		return err
	}
	from := e.stdout
	if q.GetFileDescriptor() == pb.TaskExecStdioFileDescriptor_TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDERR {
		from = e.stderr
	}
	return send(stream.Context(), from, q.GetOffset(), func(_ uint64, data []byte) error {
		return stream.Send(pb.TaskExecStdioReadResponse_builder{Data: data}.Build())
	})
}

// send reads an output to its end.
func send(ctx context.Context, from *output, offset uint64, give func(offset uint64, data []byte) error) error {
	for {
		data, err := from.at(ctx, offset)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errForgotten):
			return status.Error(codes.OutOfRange, err.Error())
		case err != nil:
			return status.FromContextError(err).Err()
		}
		if err := give(offset, data); err != nil {
			return err
		}
		offset += uint64(len(data))
	}
}

// SandboxStdioReadV2 sends what the main process says. Only what was said last is kept, so that it may begin later.
func (r *router) SandboxStdioReadV2(q *pb.SandboxStdioReadV2Request, stream grpc.ServerStreamingServer[pb.SandboxStdioReadV2Response]) error {
	e, err := r.main(stream.Context(), q.GetTaskId())
	if err != nil || e == nil {
		return err
	}
	from := e.stdout
	if q.GetFileDescriptor() == pb.SandboxStdioFileDescriptor_SANDBOX_STDIO_FILE_DESCRIPTOR_STDERR {
		from = e.stderr
	}
	return send(stream.Context(), from, max(q.GetOffset(), from.first()), func(offset uint64, data []byte) error {
		return stream.Send(pb.SandboxStdioReadV2Response_builder{Data: data, StartingOffset: offset}.Build())
	})
}

// main is the main process of a task, also when it has ended; nil: it has none.
func (r *router) main(ctx context.Context, task string) (*execution, error) {
	r.mu.Lock()
	sb := r.tasks[task]
	r.mu.Unlock()
	if sb == nil {
		return nil, status.Errorf(codes.NotFound, "Task '%s' not found", task)
	}
	sb.mu.Lock()
	defer sb.mu.Unlock()
	return sb.entry, nil
}

func (o *output) first() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.start
}

// put writes input at an offset: what was written before is not written again.
func (e *execution) put(offset uint64, data []byte, eof bool) error {
	e.in.Lock()
	defer e.in.Unlock()
	if offset > e.written {
		return status.Errorf(codes.OutOfRange, "the input has %d bytes, not %d", e.written, offset)
	}
	if skip := e.written - offset; skip < uint64(len(data)) {
		if e.closed {
			return status.Error(codes.FailedPrecondition, "the input is closed")
		}
		n, err := e.program.Stdin().Write(data[skip:])
		e.written += uint64(max(n, 0))
		if err != nil {
			return status.Error(codes.FailedPrecondition, "the program does not read any more")
		}
	}
	if eof && !e.closed {
		e.closed = true
		_ = e.program.Stdin().Close()
	}
	return nil
}

// TaskExecStdinWrite writes input.
func (r *router) TaskExecStdinWrite(ctx context.Context, q *pb.TaskExecStdinWriteRequest) (*pb.TaskExecStdinWriteResponse, error) {
	e, err := r.exec(ctx, q.GetTaskId(), q.GetExecId())
	if err != nil {
		return nil, err
	}
	return &pb.TaskExecStdinWriteResponse{}, e.put(q.GetOffset(), q.GetData(), q.GetEof())
}

// SandboxStdinWriteV2 writes input of the main process.
func (r *router) SandboxStdinWriteV2(ctx context.Context, q *pb.SandboxStdinWriteV2Request) (*pb.SandboxStdinWriteV2Response, error) {
	e, err := r.main(ctx, q.GetTaskId())
	if err != nil {
		return nil, err
	}
	if e == nil {
		return nil, status.Error(codes.FailedPrecondition, "the Sandbox has no main process")
	}
	return &pb.SandboxStdinWriteV2Response{}, e.put(q.GetOffset(), q.GetData(), q.GetEof())
}

// TaskExecStdinWriteStream writes input as it comes. Only its last message closes the input.
func (r *router) TaskExecStdinWriteStream(stream grpc.ClientStreamingServer[pb.TaskExecStdinWriteStreamRequest, pb.TaskExecStdinWriteStreamResponse]) error {
	begin, err := stream.Recv()
	if err != nil {
		return err
	}
	e, err := r.exec(stream.Context(), begin.GetStart().GetTaskId(), begin.GetStart().GetExecId())
	if err != nil {
		return err
	}
	for offset := begin.GetStart().GetOffset(); ; {
		message, err := stream.Recv()
		if err != nil {
			return err
		}
		if message.HasEnd() {
			if err := e.put(offset, nil, true); err != nil {
				return err
			}
			return stream.SendAndClose(&pb.TaskExecStdinWriteStreamResponse{})
		}
		if err := e.put(offset, message.GetData(), false); err != nil {
			return err
		}
		offset += uint64(len(message.GetData()))
	}
}

// TaskExecStdinStatus tells how much input there is.
func (r *router) TaskExecStdinStatus(ctx context.Context, q *pb.TaskExecStdinStatusRequest) (*pb.TaskExecStdinStatusResponse, error) {
	e, err := r.exec(ctx, q.GetTaskId(), q.GetExecId())
	if err != nil {
		return nil, err
	}
	e.in.Lock()
	defer e.in.Unlock()
	return pb.TaskExecStdinStatusResponse_builder{NumBytesWritten: e.written, Closed: e.closed}.Build(), nil
}

// TaskExecPoll tells how a program ended, if it has.
func (r *router) TaskExecPoll(ctx context.Context, q *pb.TaskExecPollRequest) (*pb.TaskExecPollResponse, error) {
	e, err := r.exec(ctx, q.GetTaskId(), q.GetExecId())
	if err != nil {
		return nil, err
	}
	if !e.over() {
		return &pb.TaskExecPollResponse{}, nil
	}
	code, signal := exitOf(e.exit)
	return pb.TaskExecPollResponse_builder{Code: code, Signal: signal}.Build(), nil
}

// TaskExecWait waits for the end of a program.
func (r *router) TaskExecWait(ctx context.Context, q *pb.TaskExecWaitRequest) (*pb.TaskExecWaitResponse, error) {
	e, err := r.exec(ctx, q.GetTaskId(), q.GetExecId())
	if err != nil {
		return nil, err
	}
	select {
	case <-e.ended:
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	if e.timedOut {
		return nil, status.Error(codes.DeadlineExceeded, "the command did not end in time")
	}
	code, signal := exitOf(e.exit)
	return pb.TaskExecWaitResponse_builder{Code: code, Signal: signal}.Build(), nil
}

// exitOf is an end as the protocol tells it: by a code, or by a signal.
func exitOf(exit machine.Exit) (code, signal *int32) {
	if exit.Signal != "" {
		number := signalNumber(exit.Signal)
		return nil, &number
	}
	number := int32(exit.Code)
	return &number, nil
}

func signalNumber(name string) int32 {
	if number := unix.SignalNum(name); number != 0 {
		return int32(number)
	}
	return int32(syscall.SIGKILL)
}

// usedCores is what a box used, in nanoseconds of a physical core.
func usedCores(u adapters.Sample) uint64 { return uint64(u.CPUTime / 2 / time.Nanosecond) }
