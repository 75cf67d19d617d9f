package process

import (
	"context"
	"errors"
	"fmt"
	"os"

	"connectrpc.com/connect"

	wire "github.com/isthmus/isthmus/envd/process"
)

var (
	errNoStdin    = errors.New("stdin not enabled or closed")
	errIsTerminal = errors.New("tty assigned to process — input should be written to the pty, not the stdin")
	errNoTerminal = errors.New("tty not assigned to process — input should be written to the stdin, not the tty")
)

// SendInput writes one piece of input and answers when the process has room for all of it.
func (s *Service) SendInput(ctx context.Context, req *connect.Request[wire.SendInputRequest]) (*connect.Response[wire.SendInputResponse], error) {
	r, err := s.table.find(req.Msg.GetProcess())
	if err != nil {
		return nil, err
	}
	if err := r.feed(ctx, req.Msg.GetInput()); err != nil {
		return nil, err
	}
	return connect.NewResponse(&wire.SendInputResponse{}), nil
}

// feed writes input of either kind; the error is a Connect error.
func (r *running) feed(ctx context.Context, in *wire.ProcessInput) error {
	var err error
	switch kind := in.GetInput().(type) {
	case *wire.ProcessInput_Stdin:
		if err = r.feedStdin(ctx, kind.Stdin); err != nil {
			err = fmt.Errorf("error writing to stdin: %w", err)
		}
	case *wire.ProcessInput_Pty:
		if err = r.feedTerminal(ctx, kind.Pty); err != nil {
			err = fmt.Errorf("error writing to tty: %w", err)
		}
	default:
		return connect.NewError(connect.CodeUnimplemented, fmt.Errorf("invalid input type %T", kind))
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ended(ctx.Err())
	}
	return connect.NewError(connect.CodeInternal, err)
}

func (r *running) feedStdin(ctx context.Context, b []byte) error {
	if r.terminal != nil {
		return errIsTerminal
	}
	if r.stdin == nil {
		return errNoStdin
	}
	err := r.stdin.write(ctx, b)
	if errors.Is(err, os.ErrClosed) {
		return errNoStdin
	}
	return err
}

func (r *running) feedTerminal(ctx context.Context, b []byte) error {
	if r.terminal == nil {
		return errNoTerminal
	}
	return r.terminal.write(ctx, b)
}
