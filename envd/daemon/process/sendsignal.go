package process

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"connectrpc.com/connect"

	wire "github.com/isthmus/isthmus/envd/process"
)

// killGrace is how long a kill is waited for. A process that hangs in the kernel takes longer, and the answer
// does not wait for it.
const killGrace = 100 * time.Millisecond

// SendSignal signals one process, never its group or children. Once a kill is answered, the process is gone
// for the next call too.
func (s *Service) SendSignal(ctx context.Context, req *connect.Request[wire.SendSignalRequest]) (*connect.Response[wire.SendSignalResponse], error) {
	r, err := s.table.find(req.Msg.GetProcess())
	if err != nil {
		return nil, err
	}
	var sig syscall.Signal
	switch req.Msg.GetSignal() {
	case wire.Signal_SIGNAL_SIGTERM:
		sig = syscall.SIGTERM
	case wire.Signal_SIGNAL_SIGKILL:
		sig = killed
	default:
		return nil, connect.NewError(connect.CodeUnimplemented, fmt.Errorf("invalid signal: %s", req.Msg.GetSignal()))
	}
	if err := r.signal(sig); err != nil {
		return nil, connect.NewError(connect.CodeInternal, fmt.Errorf("error sending signal: %w", err))
	}
	if sig == killed {
		ctx, cancel := context.WithTimeout(ctx, killGrace)
		defer cancel()
		select {
		case <-r.gone:
		case <-ctx.Done():
		}
	}
	return connect.NewResponse(&wire.SendSignalResponse{}), nil
}
