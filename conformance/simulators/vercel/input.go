//go:build linux

package vercel

import (
	"context"
	"io"
	"net/http"
	"sync"
	"syscall"
)

// stdin is the input of a command that asked for one.
type stdin struct {
	mu      sync.Mutex
	to      io.WriteCloser
	written int64
	closed  bool
}

// writeStdin adds to the input of a command. An offset says how much the caller knows to be written: what is sent
// again is skipped.
func (s *Server) writeStdin(r *http.Request) (any, error) {
	var body struct {
		Data   []byte `json:"data"`
		Offset *int64 `json:"offset"`
		Close  bool   `json:"close"`
	}
	if err := read(r, &body); err != nil {
		return nil, err
	}
	c, err := s.commandOf(r)
	if err != nil {
		return nil, err
	}
	if c.stdin == nil {
		return nil, fail(http.StatusBadRequest, "command_stdin_unavailable", "The command has no standard input.")
	}
	c.stdin.mu.Lock()
	defer c.stdin.mu.Unlock()
	data, err := c.stdin.fresh(body.Data, body.Offset)
	if err != nil {
		return nil, err
	}
	n, err := c.stdin.to.Write(data)
	c.stdin.written += int64(n)
	if err != nil && len(data) > 0 {
		return nil, fail(http.StatusBadRequest, "command_stdin_unavailable", "The command does not read its input any more.")
	}
	if body.Close && !c.stdin.closed {
		c.stdin.closed = true
		_ = c.stdin.to.Close()
	}
	return map[string]any{"command": c.show(), "bytesWritten": c.stdin.written}, nil
}

// fresh is the part of the data that was not written yet; mu is held.
func (in *stdin) fresh(data []byte, offset *int64) ([]byte, error) {
	if in.closed && len(data) > 0 {
		return nil, fail(http.StatusBadRequest, "command_stdin_unavailable", "The input of the command is closed.")
	}
	if offset == nil {
		return data, nil
	}
	if *offset > in.written || *offset < 0 {
		return nil, badRequest("The offset is past what was written.")
	}
	return data[min(in.written-*offset, int64(len(data))):], nil
}

// killCommand sends a signal to a command.
func (s *Server) killCommand(r *http.Request) (any, error) {
	var body struct {
		Signal int `json:"signal"`
	}
	if err := read(r, &body); err != nil {
		return nil, err
	}
	if _, err := s.running(r); err != nil {
		return nil, err
	}
	c, err := s.commandOf(r)
	if err != nil {
		return nil, err
	}
	if body.Signal == 0 {
		body.Signal = int(syscall.SIGTERM)
	}
	if c.show().ExitCode == nil {
		_ = c.process.Signal(context.WithoutCancel(r.Context()), syscall.Signal(body.Signal)) // it may have ended meanwhile
	}
	return map[string]any{"command": c.show()}, nil
}
