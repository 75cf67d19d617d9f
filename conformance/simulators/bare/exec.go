//go:build linux

package bare

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// Exec starts a program in a box. Both its outputs come as one, so that whoever started it sees what went wrong.
func (c *Cloud) Exec(ctx context.Context, id string, argv []string) (adapters.Execution, error) {
	one, err := c.find(id)
	if err != nil {
		return nil, err
	}
	p, err := one.Start(ctx, machine.Command{Argv: argv, Stdin: true, Dir: "/"})
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	var both sync.WaitGroup
	for _, from := range []io.Reader{p.Stdout(), p.Stderr()} {
		both.Go(func() { _, _ = io.Copy(w, from) })
	}
	go func() { both.Wait(); _ = w.Close() }()
	return execution{p, r}, nil
}

type execution struct {
	p   *machine.Process
	out *io.PipeReader
}

// Read reads what the program says.
func (e execution) Read(b []byte) (int, error) { return e.out.Read(b) }

// Write writes to the program's input.
func (e execution) Write(b []byte) (int, error) { return e.p.Stdin().Write(b) }

// CloseWrite ends the program's input.
func (e execution) CloseWrite() error { return e.p.Stdin().Close() }

// Wait returns the exit code.
func (e execution) Wait(ctx context.Context) (int, error) {
	exit, err := e.p.Wait(ctx)
	return exit.Code, err
}

// Close lets go of the program.
func (e execution) Close() error {
	e.p.Close()
	return errors.Join(e.p.Stdin().Close(), e.out.Close())
}
