package process

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"github.com/isthmus/isthmus/envd/daemon/spawn"
	wire "github.com/isthmus/isthmus/envd/process"
)

// Update resizes a process's terminal. Without a size it does nothing.
func (s *Service) Update(_ context.Context, req *connect.Request[wire.UpdateRequest]) (*connect.Response[wire.UpdateResponse], error) {
	r, err := s.table.find(req.Msg.GetProcess())
	if err != nil {
		return nil, err
	}
	if pty := req.Msg.GetPty(); pty != nil {
		if err := r.resize(pty.GetSize()); err != nil {
			return nil, connect.NewError(connect.CodeInternal, fmt.Errorf("error resizing tty: %w", err))
		}
	}
	return connect.NewResponse(&wire.UpdateResponse{}), nil
}

func (r *running) resize(size *wire.PTY_Size) error {
	if r.terminal == nil {
		return errors.New("tty not assigned to process")
	}
	return spawn.Resize(r.terminal.file, cells(size.GetCols()), cells(size.GetRows()))
}
