package adapters

import (
	"context"
	"io"
	"io/fs"
)

// Bootable is the power to bring a program into a box and to start it once: all that the bootstrap needs.
type Bootable interface {
	// Put writes a file in the box, makes the folders above it, and replaces what is there in one step.
	// KindNotFound when the box is gone.
	Put(ctx context.Context, boxID, path string, mode fs.FileMode, content io.Reader) error

	// Exec starts a program in the box as its most privileged user. argv[0] is an absolute path. It returns
	// when the program has been started; ctx bounds the starting only. KindNotFound when the box is gone,
	// KindPrecondition when there is no such program.
	Exec(ctx context.Context, boxID string, argv []string) (Execution, error)
}

// Execution is one program that was started in a box. Read reads its standard output, Write writes to its
// standard input; one goroutine may read while another writes.
type Execution interface {
	io.Reader
	io.Writer
	// CloseWrite ends the program's input.
	CloseWrite() error
	// Wait returns the exit code once the program has ended and its output was read.
	Wait(ctx context.Context) (code int, err error)
	// Close lets go of the program: its input and output end. Twice is fine.
	Close() error
}
