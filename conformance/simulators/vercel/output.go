//go:build linux

package vercel

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// maxLogs bounds what is kept of one command, in records.
const maxLogs = 1 << 14

// gather reads one of the command's outputs. What is not UTF-8 is replaced, as in any JSON string.
func (c *command) gather(stream string, from io.Reader) {
	buffer, held := make([]byte, 32<<10), 0
	for {
		n, err := from.Read(buffer[held:])
		n += held
		held = 0
		if err == nil {
			held = unfinished(buffer[:n])
		}
		if text := strings.ToValidUTF8(string(buffer[:n-held]), "\uFFFD"); text != "" {
			c.append(record{stream, text})
		}
		copy(buffer, buffer[n-held:n])
		if err != nil {
			return
		}
	}
}

// unfinished is how many bytes at the end are the beginning of a character.
func unfinished(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if start := text[len(text)-n:]; utf8.RuneStart(start[0]) {
			if !utf8.FullRune(start) {
				return n
			}
			return 0
		}
	}
	return 0
}

func (c *command) append(one record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.records) < maxLogs {
		c.records = append(c.records, one)
		c.tell()
	}
}

// signalled is the exit code of a command that a signal ended, as a shell has it.
func signalled(name string) int {
	if n := unix.SignalNum(name); n > 0 {
		return 128 + int(n)
	}
	return 255
}

// runToEnd runs a command of the simulator's own.
func runToEnd(ctx context.Context, box *machine.Box, what machine.Command) (int, error) {
	process, err := box.Start(ctx, what)
	if err != nil {
		return 0, err
	}
	defer process.Close()
	go func() { _, _ = io.Copy(io.Discard, process.Stderr()) }()
	_, _ = io.Copy(io.Discard, process.Stdout())
	exit, err := process.Wait(ctx)
	return exit.Code, err
}

// commandOf returns the command of a request, in a session that may have ended.
func (s *Server) commandOf(r *http.Request) (*command, error) {
	one, err := s.sessionOf(r)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := one.commands[r.PathValue("cmd")]; c != nil {
		return c, nil
	}
	return nil, notFound("The command")
}

// listCommands answers the commands of a session, the newest first.
func (s *Server) listCommands(r *http.Request) (any, error) {
	one, err := s.sessionOf(r)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	order := slices.Clone(one.order)
	s.mu.Unlock()
	all := []Command{}
	for _, c := range slices.Backward(order) {
		all = append(all, c.show())
	}
	return map[string]any{"commands": all}, nil
}

// getCommand answers one command; with wait=true when it has ended.
func (s *Server) getCommand(r *http.Request) (any, error) {
	c, err := s.commandOf(r)
	if err != nil {
		return nil, err
	}
	if r.URL.Query().Get("wait") == "true" {
		c.wait(r.Context())
		if c.show().ExitCode == nil {
			return nil, stopped()
		}
	}
	return map[string]any{"command": c.show()}, nil
}

// commandLogs streams what the command said, from the first record on. They are gone with the session.
func (s *Server) commandLogs(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.running(r); err != nil {
		return err
	}
	c, err := s.commandOf(r)
	if err != nil {
		return err
	}
	c.follow(r.Context(), newLines(w), true)
	return nil
}
