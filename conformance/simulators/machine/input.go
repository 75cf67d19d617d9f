//go:build linux

package machine

import (
	"errors"
	"io"
	"sync/atomic"

	"connectrpc.com/connect"

	"github.com/isthmus/isthmus/adapters"
	wire "github.com/isthmus/isthmus/envd/process"
)

// maxInput bounds one piece of input in bytes.
const maxInput = 64 << 10

// endOfInput is what a terminal takes for the end of its input: Ctrl-D.
const endOfInput = "\x04"

// input is the standard input of a process.
type input struct {
	process *Process
	none    bool
	closed  atomic.Bool
}

// Write gives the process input, and returns when it was taken.
func (in *input) Write(b []byte) (int, error) {
	if in.none || in.closed.Load() {
		return 0, io.ErrClosedPipe
	}
	for done := 0; done < len(b); {
		piece := b[done:min(len(b), done+maxInput)]
		if err := in.send(piece); err != nil {
			return done, err
		}
		done += len(piece)
	}
	return len(b), nil
}

func (in *input) send(piece []byte) error {
	p := in.process
	message := &wire.ProcessInput{Input: &wire.ProcessInput_Stdin{Stdin: piece}}
	if p.pty {
		message.Input = &wire.ProcessInput_Pty{Pty: piece}
	}
	_, err := p.box.processes().SendInput(p.life, connect.NewRequest(&wire.SendInputRequest{Process: p.selector(), Input: message}))
	if err != nil {
		return in.broken(err)
	}
	return nil
}

func (in *input) end() error {
	p := in.process
	if p.pty {
		return in.send([]byte(endOfInput))
	}
	_, err := p.box.processes().CloseStdin(p.life, connect.NewRequest(&wire.CloseStdinRequest{Process: p.selector()}))
	if err != nil {
		return in.broken(err)
	}
	return nil
}

// broken is the error of input that nobody takes any more.
func (in *input) broken(err error) error {
	select {
	case <-in.process.life.Done():
		return io.ErrClosedPipe
	default:
	}
	if connect.CodeOf(err) == connect.CodeNotFound {
		return io.ErrClosedPipe
	}
	return adapters.Wrap(adapters.KindUnavailable, err, "the input could not be given to the process: "+err.Error())
}

// Close ends the input. Twice is fine.
func (in *input) Close() error {
	if in.none || in.closed.Swap(true) {
		return nil
	}
	err := in.end()
	if errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}
