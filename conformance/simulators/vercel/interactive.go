//go:build linux

package vercel

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/coder/websocket"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// openInteractive answers where a terminal can be had.
func (s *Server) openInteractive(r *http.Request) (any, error) {
	one, err := s.running(r)
	if err != nil {
		return nil, err
	}
	return map[string]any{"url": "ws://" + r.Host + "/interactive/" + one.info.ID, "token": s.terminalToken(one)}, nil
}

func (s *Server) terminalToken(one *session) string { return "terminal-of-" + one.info.ID }

// startMessage is the first message of a caller.
type startMessage struct {
	Type    string   `json:"type"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
	Env     []string `json:"env"`
	CWD     string   `json:"cwd"`
	Cols    int      `json:"cols"`
	Rows    int      `json:"rows"`
}

// serveInteractive is a terminal over a WebSocket: text is control, binary is what is typed and shown.
func (s *Server) serveInteractive(w http.ResponseWriter, r *http.Request, id string) {
	s.mu.Lock()
	one := s.sessions[id]
	s.mu.Unlock()
	if one == nil || r.URL.Query().Get("token") != s.terminalToken(one) {
		http.Error(w, "forbidden", http.StatusForbidden)
		return
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return
	}
	defer func() { _ = conn.CloseNow() }()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	process, err := s.startTerminal(ctx, one, conn)
	if err != nil {
		_ = conn.Close(websocket.StatusPolicyViolation, "the terminal could not be started")
		return
	}
	defer process.Close()
	go typed(ctx, conn, process)
	shown(ctx, conn, process)
	exit, err := process.Wait(ctx)
	if err != nil {
		return
	}
	text, _ := json.Marshal(map[string]any{"type": "exit", "code": exit.Code})
	_ = conn.Write(ctx, websocket.MessageText, text)
	_ = conn.Close(websocket.StatusNormalClosure, "")
}

// startTerminal waits for the first message and starts what it says.
func (s *Server) startTerminal(ctx context.Context, one *session, conn *websocket.Conn) (*machine.Process, error) {
	_, text, err := conn.Read(ctx)
	if err != nil {
		return nil, err
	}
	var start startMessage
	if err := json.Unmarshal(text, &start); err != nil || start.Type != "start" {
		return nil, errors.New("the first message must be start")
	}
	env := map[string]string{}
	for _, pair := range start.Env {
		key, value, _ := strings.Cut(pair, "=")
		env[key] = value
	}
	if start.CWD == "" {
		start.CWD = workdir
	}
	argv := append([]string{"/bin/sh", "-c", `exec "$0" "$@"`, start.Command}, start.Args...)
	return one.box.Start(s.life, machine.Command{
		Argv: argv, Env: env, Dir: start.CWD, User: s.config.User, PTY: &machine.Size{Rows: max(1, start.Rows), Cols: max(1, start.Cols)}, Stdin: true,
	})
}

// typed carries what the caller sends.
func typed(ctx context.Context, conn *websocket.Conn, process *machine.Process) {
	for {
		kind, data, err := conn.Read(ctx)
		if err != nil {
			process.Close()
			return
		}
		var resize startMessage
		if kind == websocket.MessageText && json.Unmarshal(data, &resize) == nil && resize.Type == "resize" {
			_ = process.Resize(ctx, machine.Size{Rows: resize.Rows, Cols: resize.Cols})
			continue
		}
		if _, err := process.Stdin().Write(data); err != nil {
			return
		}
	}
}

// shown carries what the terminal shows, until its end.
func shown(ctx context.Context, conn *websocket.Conn, process *machine.Process) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := process.Stdout().Read(buffer)
		if n > 0 && conn.Write(ctx, websocket.MessageBinary, buffer[:n]) != nil {
			return
		}
		if err != nil || errors.Is(err, io.EOF) {
			return
		}
	}
}
