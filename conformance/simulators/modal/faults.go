//go:build linux

package modal

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Fault is one thing that goes wrong.
type Fault struct {
	// Method is the call that is struck, by the name of its RPC, for example SandboxCreateV2.
	Method string
	// Times is how often; 0: until it is cleared.
	Times int
	// Delay comes before anything else.
	Delay time.Duration
	// Code and Message are the answer instead of any work; codes.OK: the work is done.
	Code    codes.Code
	Message string
	// RetryAfter is in the details of that answer, as the cloud throttles.
	RetryAfter time.Duration
	// Lost says that the work is done and the answer is not given: the caller sees Unavailable.
	Lost bool
	// Change alters the answer; nil: it is as it is.
	Change func(answer proto.Message)
	// CutAfter ends a stream with Unavailable after so many messages; 0: never.
	CutAfter int
}

// Faults are the switches of one server. Safe for concurrent use.
type Faults struct {
	mu  sync.Mutex
	set []*Fault
}

// Add sets a fault. Of several for one method the first that was set strikes first.
func (f *Faults) Add(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.set = append(f.set, &fault)
}

// Clear takes all faults away.
func (f *Faults) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.set = nil
}

// strike is the fault for a call; an empty one when all is well.
func (f *Faults) strike(method string) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.set, func(one *Fault) bool { return one.Method == method })
	if i < 0 {
		return Fault{}
	}
	struck := *f.set[i]
	if f.set[i].Times == 1 {
		f.set = slices.Delete(f.set, i, i+1)
	} else if f.set[i].Times > 1 {
		f.set[i].Times--
	}
	return struck
}

// before is what happens instead of the work.
func (f Fault) before(ctx context.Context) error {
	if f.Delay > 0 {
		timer := time.NewTimer(f.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
	if f.Code == codes.OK {
		return nil
	}
	answer := status.New(f.Code, f.Message)
	if f.RetryAfter > 0 {
		policy := pb.RPCRetryPolicy_builder{RetryAfterSecs: float32(f.RetryAfter.Seconds())}.Build()
		detailed, err := answer.WithDetails(policy)
		if err != nil {
			return errors.Join(err, answer.Err())
		}
		answer = detailed
	}
	return answer.Err()
}

// after is what becomes of the answer.
func (f Fault) after(answer any) (any, error) {
	if f.Lost {
		return nil, status.Error(codes.Unavailable, "the connection was lost")
	}
	if message, ok := answer.(proto.Message); ok && f.Change != nil {
		f.Change(message)
	}
	return answer, nil
}

// wrap cuts a stream off where the fault says so.
func (f Fault) wrap(stream grpc.ServerStream) grpc.ServerStream {
	if f.CutAfter == 0 {
		return stream
	}
	return &cutStream{ServerStream: stream, left: f.CutAfter}
}

type cutStream struct {
	grpc.ServerStream
	left int
}

// SendMsg sends while there is something left.
func (c *cutStream) SendMsg(message any) error {
	if c.left == 0 {
		return status.Error(codes.Unavailable, "the stream was cut")
	}
	c.left--
	return c.ServerStream.SendMsg(message)
}
