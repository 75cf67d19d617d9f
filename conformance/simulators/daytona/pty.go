package daytona

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coder/websocket"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// maxSize bounds columns and rows.
const maxSize = 1000

// terminal is a shell on a terminal. Whoever connects gets what it wrote lately, and then all that it writes.
type terminal struct {
	terminalFacts
	process *machine.Process
	reading sync.WaitGroup

	mu       sync.Mutex
	recent   []byte
	watchers map[chan []byte]bool
	exit     *machine.Exit
	done     chan struct{}
}

// terminalFacts are what the daemon shows of a terminal.
type terminalFacts struct {
	ID        string            `json:"id"`
	Cwd       string            `json:"cwd"`
	Envs      map[string]string `json:"envs"`
	Cols      int               `json:"cols"`
	Rows      int               `json:"rows"`
	CreatedAt time.Time         `json:"createdAt"`
	Active    bool              `json:"active"`
	LazyStart bool              `json:"lazyStart"`
}

func (t *terminal) view() terminalFacts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.terminalFacts
}

// kept is how much of a terminal's output is kept for those who connect later, in bytes.
const kept = 64 << 10

// openPTY starts a shell on a new terminal.
func (c *toolCall) openPTY(t *terminal) error {
	if t.ID == "" {
		return ofDaemon(http.StatusBadRequest, "BAD_REQUEST", "id is required")
	}
	t.Cols, t.Rows = or(t.Cols, 80), or(t.Rows, 24)
	if t.Cols > maxSize || t.Rows > maxSize || t.Cols < 0 || t.Rows < 0 {
		return ofDaemon(http.StatusBadRequest, "BAD_REQUEST", "cols and rows must be at most 1000")
	}
	if t.Envs == nil {
		t.Envs = map[string]string{}
	}
	if t.Cwd == "" {
		t.Cwd = c.home()
	}
	c.sb.mu.Lock()
	defer c.sb.mu.Unlock()
	if c.sb.ptys[t.ID] != nil {
		return ofDaemon(http.StatusConflict, "CONFLICT", "PTY session with ID "+t.ID+" already exists")
	}
	env := c.environment(t.Envs)
	env["TERM"] = "xterm-256color"
	process, err := c.box.Start(c.Context(), machine.Command{
		Argv: []string{"/bin/bash"}, Env: env, Dir: c.absolute(t.Cwd), User: c.sb.facts.User, PTY: &machine.Size{Rows: t.Rows, Cols: t.Cols}, Stdin: true,
	})
	if err != nil {
		return ofDaemon(http.StatusInternalServerError, "INTERNAL", err.Error())
	}
	t.process, t.Active, t.CreatedAt = process, true, time.Now().UTC()
	t.watchers, t.done = map[chan []byte]bool{}, make(chan struct{})
	c.sb.ptys[t.ID] = t
	t.reading.Go(t.run)
	return nil
}

// run hands the output to those who watch, until the shell has ended.
func (t *terminal) run() {
	buffer := make([]byte, 32<<10)
	for {
		n, err := t.process.Stdout().Read(buffer)
		t.mu.Lock()
		t.recent = append(t.recent, buffer[:n]...)
		t.recent = t.recent[max(0, len(t.recent)-kept):]
		for watcher := range t.watchers {
			select {
			case watcher <- append([]byte{}, buffer[:n]...):
			default: // one that does not read loses its place
				delete(t.watchers, watcher)
				close(watcher)
			}
		}
		t.mu.Unlock()
		if err != nil {
			break
		}
	}
	exit, err := t.process.Wait(context.Background())
	if err != nil {
		exit.Code = -1
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.exit, t.Active = &exit, false
	close(t.done)
}

// end kills the shell.
func (t *terminal) end() {
	_ = t.process.Signal(context.Background(), syscall.SIGKILL)
	t.process.Close()
	t.reading.Wait()
}

func createPTY(c *toolCall) (reply, error) {
	one := &terminal{}
	if err := read(c.Request, &one.terminalFacts); err != nil {
		return reply{}, err
	}
	if err := c.openPTY(one); err != nil {
		return reply{}, err
	}
	return reply{http.StatusCreated, map[string]any{"sessionId": one.ID}}, nil
}

// createConnectPTY makes a terminal and connects to it in one call. Variables come in a subprotocol.
func createConnectPTY(w http.ResponseWriter, c *toolCall) error {
	query := c.URL.Query()
	one := &terminal{terminalFacts: terminalFacts{
		ID: query.Get("id"), Cwd: query.Get("cwd"), Cols: size(query.Get("cols")), Rows: size(query.Get("rows")), Envs: map[string]string{},
	}}
	for _, word := range offered(c.Request) {
		encoded, is := strings.CutPrefix(word, "X-Daytona-Pty-Envs~")
		if !is {
			continue
		}
		text, err := base64.RawURLEncoding.DecodeString(encoded)
		if err == nil {
			err = json.Unmarshal(text, &one.Envs)
		}
		if err != nil {
			return ofDaemon(http.StatusBadRequest, "BAD_REQUEST", "the variables cannot be read")
		}
	}
	if err := c.openPTY(one); err != nil {
		return err
	}
	return one.connect(w, c)
}

func size(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

func connectPTY(w http.ResponseWriter, c *toolCall) error {
	one, err := c.ptyOf()
	if err != nil {
		return err
	}
	return one.connect(w, c)
}

func (c *toolCall) ptyOf() (*terminal, error) {
	c.sb.mu.Lock()
	defer c.sb.mu.Unlock()
	one := c.sb.ptys[c.PathValue("pty")]
	if one == nil {
		return nil, ofDaemon(http.StatusNotFound, "PROCESS_NOT_FOUND", "PTY session "+c.PathValue("pty")+" not found")
	}
	return one, nil
}

// connect joins a client to the terminal.
func (t *terminal) connect(w http.ResponseWriter, c *toolCall) error {
	ws, err := websocket.Accept(w, c.Request, &websocket.AcceptOptions{InsecureSkipVerify: true, Subprotocols: echoed(c.Request)})
	if err != nil {
		return nil //nolint:nilerr // it has been answered
	}
	defer func() { _ = ws.CloseNow() }()
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	watcher := make(chan []byte, 1024)
	t.mu.Lock()
	recent := append([]byte{}, t.recent...)
	t.watchers[watcher] = true
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		delete(t.watchers, watcher)
		t.mu.Unlock()
	}()
	if control(ctx, ws, map[string]any{"status": "connected"}) != nil || len(recent) > 0 && writeFrame(ctx, ws, recent) != nil {
		return nil
	}
	go t.listen(ctx, cancel, ws)
	t.tell(ctx, ws, watcher)
	return nil
}

// echoed are the subprotocols of which one is echoed: the one that a client understands.
func echoed(r *http.Request) []string {
	all := []string{"X-Daytona-Pty-Exit-Control"}
	return append(all, offered(r)...)
}

// listen writes what the client sends to the terminal, until the client leaves.
func (t *terminal) listen(ctx context.Context, cancel func(), ws *websocket.Conn) {
	defer cancel()
	for {
		_, text, err := ws.Read(ctx)
		if err != nil {
			return
		}
		if _, err := t.process.Stdin().Write(text); err != nil {
			return
		}
	}
}

// tell sends the output, and at last how the shell has ended: by a message, and in the reason of the closing.
func (t *terminal) tell(ctx context.Context, ws *websocket.Conn, watcher chan []byte) {
	for {
		select {
		case text, open := <-watcher:
			if !open || len(text) > 0 && writeFrame(ctx, ws, text) != nil {
				return
			}
		case <-t.done:
			for len(watcher) > 0 {
				if writeFrame(ctx, ws, <-watcher) != nil {
					return
				}
			}
			t.mu.Lock()
			end := map[string]any{"exitCode": t.exit.Code}
			if t.exit.Signal != "" {
				end["exitReason"] = "terminated by signal " + t.exit.Signal
			}
			t.mu.Unlock()
			reason, _ := json.Marshal(end)
			end["status"] = "exited"
			_ = control(ctx, ws, end)
			_ = ws.Close(websocket.StatusNormalClosure, string(reason))
			return
		case <-ctx.Done():
			return
		}
	}
}

// control sends a message that is not of the terminal.
func control(ctx context.Context, ws *websocket.Conn, message map[string]any) error {
	message["type"] = "control"
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	return ws.Write(ctx, websocket.MessageText, text)
}

func listPTYs(c *toolCall) (reply, error) {
	c.sb.mu.Lock()
	defer c.sb.mu.Unlock()
	all := []terminalFacts{}
	for _, one := range c.sb.ptys {
		all = append(all, one.view())
	}
	return ok(map[string]any{"sessions": all})
}

func getPTY(c *toolCall) (reply, error) {
	one, err := c.ptyOf()
	if err != nil {
		return reply{}, err
	}
	return ok(one.view())
}

func deletePTY(c *toolCall) (reply, error) {
	one, err := c.ptyOf()
	if err != nil {
		return reply{}, err
	}
	c.sb.mu.Lock()
	delete(c.sb.ptys, one.ID)
	c.sb.mu.Unlock()
	one.end()
	return ok(map[string]any{"message": "PTY session deleted"})
}

func resizePTY(c *toolCall) (reply, error) {
	one, err := c.ptyOf()
	if err != nil {
		return reply{}, err
	}
	var body struct {
		Cols int `json:"cols"`
		Rows int `json:"rows"`
	}
	if err := read(c.Request, &body); err != nil {
		return reply{}, err
	}
	if body.Cols < 1 || body.Rows < 1 || body.Cols > maxSize || body.Rows > maxSize {
		return reply{}, ofDaemon(http.StatusBadRequest, "BAD_REQUEST", "cols and rows must be between 1 and 1000")
	}
	if err := one.process.Resize(c.Context(), machine.Size{Rows: body.Rows, Cols: body.Cols}); err != nil {
		return reply{}, ofDaemon(http.StatusGone, "SESSION_ENDED", "session has ended")
	}
	one.mu.Lock()
	one.Cols, one.Rows = body.Cols, body.Rows
	one.mu.Unlock()
	return ok(one.view())
}
