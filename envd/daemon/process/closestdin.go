package process

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	wire "github.com/isthmus/isthmus/envd/process"
)

var errTerminalInput = errors.New("cannot close stdin for PTY process — send Ctrl+D (0x04) instead")

// CloseStdin ends a process's input. Repeated, or where there is none, it does nothing.
func (s *Service) CloseStdin(_ context.Context, req *connect.Request[wire.CloseStdinRequest]) (*connect.Response[wire.CloseStdinResponse], error) {
	r, err := s.table.find(req.Msg.GetProcess())
	if err != nil {
		return nil, err
	}
	if r.terminal != nil {
		return nil, connect.NewError(connect.CodeUnknown, fmt.Errorf("error closing stdin: %w", errTerminalInput))
	}
	if r.stdin != nil {
		r.stdin.close()
	}
	return connect.NewResponse(&wire.CloseStdinResponse{}), nil
}
