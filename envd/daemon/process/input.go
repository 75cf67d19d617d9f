package process

import (
	"context"
	"os"
	"time"
)

// input is what a process reads from: a pipe or a terminal.
type input struct {
	file *os.File
	// turn is taken by who writes, so that two calls never mix their bytes.
	turn chan struct{}
}

func newInput(f *os.File) *input { return &input{file: f, turn: make(chan struct{}, 1)} }

// write waits until the process has room for every byte, or ctx ends.
func (in *input) write(ctx context.Context, b []byte) error {
	select {
	case in.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-in.turn }()
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		_ = in.file.SetWriteDeadline(time.Unix(1, 0))
	})
	_, err := in.file.Write(b)
	if !stop() {
		<-interrupted
		_ = in.file.SetWriteDeadline(time.Time{})
		if err != nil {
			return ctx.Err()
		}
	}
	return err
}

// close ends the input; a write that waits is given up. Closing twice is fine.
func (in *input) close() { _ = in.file.Close() }
