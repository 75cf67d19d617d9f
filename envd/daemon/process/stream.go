package process

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"connectrpc.com/connect"

	"github.com/isthmus/isthmus/envd/daemon/stack"
	wire "github.com/isthmus/isthmus/envd/process"
)

// A client names the seconds after which an idle stream shall carry a sign of life.
const (
	headerKeepalive  = "Keepalive-Ping-Interval"
	defaultKeepalive = 90
	minKeepalive     = 1
	maxKeepalive     = 24 * 60 * 60
)

func keepalive(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get(headerKeepalive))
	if err != nil {
		seconds = defaultKeepalive
	}
	return time.Duration(min(max(seconds, minKeepalive), maxKeepalive)) * time.Second
}

// stream sends a process's events to one client: its start, then what happens from now on, to the end.
func stream(ctx context.Context, pid uint32, from *subscriber, idle time.Duration, send func(*wire.ProcessEvent) error) error {
	var err error
	stack.Apart(func() { err = send(startEvent(pid)) }) // the answer's header goes with it
	if err != nil {
		return err
	}
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ended(ctx.Err())
		case <-timer.C:
			if err := send(keepaliveEvent()); err != nil {
				return err
			}
		case m := <-from.events:
			last := m.event.GetEnd() != nil
			// The time limit that ended the stream also killed the process: the client is told the limit.
			if last && expired(ctx) {
				return ended(context.DeadlineExceeded)
			}
			err := send(m.event) // it has written it when it returns
			m.chunk.release()
			if err != nil || last {
				return err
			}
		}
		timer.Reset(idle)
	}
}

func expired(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && !time.Now().Before(deadline)
}

func ended(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return connect.NewError(connect.CodeDeadlineExceeded, err)
	}
	return connect.NewError(connect.CodeCanceled, err)
}

func startEvent(pid uint32) *wire.ProcessEvent {
	return &wire.ProcessEvent{Event: &wire.ProcessEvent_Start{Start: &wire.ProcessEvent_StartEvent{Pid: pid}}}
}

func keepaliveEvent() *wire.ProcessEvent {
	return &wire.ProcessEvent{Event: &wire.ProcessEvent_Keepalive{Keepalive: &wire.ProcessEvent_KeepAlive{}}}
}
