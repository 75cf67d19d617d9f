//go:build linux

package vercel

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// record is one line of a command's stream.
type record struct {
	Stream string `json:"stream"`
	Data   any    `json:"data"`
}

// streamError is the data of a record that tells of trouble.
type streamError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// command is one command of a session.
type command struct {
	session *session
	process *machine.Process
	stdin   *stdin // nil: it was not asked for

	mu      sync.Mutex
	info    Command
	records []record
	// done is set with the last record.
	done    bool
	changed chan struct{} // closed, and made anew, whenever there is more
}

// runBody is the body of a run.
type runBody struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	CWD     string            `json:"cwd"`
	Env     map[string]string `json:"env"`
	Sudo    bool              `json:"sudo"`
	Wait    bool              `json:"wait"`
	Logs    bool              `json:"logs"`
	Timeout int64             `json:"timeout"`
	Stdin   bool              `json:"attachStdin"`
}

// runCommand starts a command. With wait the answer is a stream that ends when it does.
func (s *Server) runCommand(w http.ResponseWriter, r *http.Request) error {
	var body runBody
	if err := read(r, &body); err != nil {
		return err
	}
	one, err := s.running(r)
	if err != nil {
		return err
	}
	if body.Command == "" {
		return badRequest("command is missing.")
	}
	c, err := one.start(body)
	if err != nil {
		return err
	}
	if !body.Wait {
		writeJSON(w, http.StatusOK, map[string]any{"command": c.show()})
		return nil
	}
	lines := newLines(w)
	first := c.show()
	first.ExitCode, first.DurationMS = nil, nil // the command as it began, however soon it ended: its output comes first
	if lines.write(map[string]any{"command": first}) != nil {
		return nil //nolint:nilerr // nobody listens any more; the command goes on
	}
	if c.follow(r.Context(), lines, body.Logs) {
		_ = lines.write(map[string]any{"command": c.show()})
	}
	return nil
}

// start starts a command in the box.
func (one *session) start(body runBody) (*command, error) {
	s := one.server
	user := s.config.User
	if body.Sudo {
		user = "root"
	}
	dir := body.CWD
	if dir == "" {
		dir = workdir
	}
	c := &command{session: one, changed: make(chan struct{}), info: Command{
		ID: newID("cmd_"), Name: body.Command, Args: append([]string{}, body.Args...), CWD: dir, SessionID: one.info.ID,
		StartedAt: milliseconds(time.Now()),
	}}
	// The shell finds the program, and says 127 when there is none.
	argv := append([]string{"/bin/sh", "-c", `exec "$0" "$@"`, body.Command}, body.Args...)
	process, err := one.box.Start(s.life, machine.Command{Argv: argv, Env: body.Env, Dir: dir, User: user, Stdin: body.Stdin})
	if err != nil {
		if state := one.ready(); state != nil {
			return nil, state // it was stopped meanwhile
		}
		return nil, badRequest("The command could not be started: " + err.Error())
	}
	c.process = process
	if body.Stdin {
		c.stdin = &stdin{to: process.Stdin()}
	}
	s.mu.Lock()
	one.commands[c.info.ID] = c
	one.order = append(one.order, c)
	s.mu.Unlock()
	s.work.Go(c.collect)
	if body.Timeout > 0 {
		timer := time.AfterFunc(time.Duration(body.Timeout)*time.Millisecond, func() { _ = process.Signal(s.life, syscall.SIGKILL) })
		s.work.Go(func() { c.wait(context.Background()); timer.Stop() })
	}
	return c, nil
}

// collect reads what the command says until it ends or its session does.
func (c *command) collect() {
	var readers sync.WaitGroup
	readers.Go(func() { c.gather("stdout", c.process.Stdout()) })
	readers.Go(func() { c.gather("stderr", c.process.Stderr()) })
	exited := make(chan machine.Exit, 1)
	go func() {
		readers.Wait()
		exit, err := c.process.Wait(context.Background())
		if err != nil {
			exit.Code = -1
		}
		exited <- exit
	}()
	select {
	case exit := <-exited:
		c.finish(exit)
	case <-c.session.ended:
		c.lose()
	}
	c.process.Close()
}

// finish notes how the command ended, unless its session ended with it.
func (c *command) finish(exit machine.Exit) {
	code := exit.Code
	if exit.Signal != "" {
		code = signalled(exit.Signal)
	}
	if code < 0 { // it was lost, and with it the session
		<-c.session.ended
		c.lose()
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	took := milliseconds(time.Now()) - c.info.StartedAt
	c.info.ExitCode, c.info.DurationMS, c.done = &code, &took, true
	c.tell()
}

// lose ends the stream of a command whose session ended: how the command ended is not known.
func (c *command) lose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.records = append(c.records, record{"error", streamError{"sandbox_stopped", "The sandbox was stopped while the command ran."}})
	c.done = true
	c.tell()
}

// tell wakes who waits; mu is held.
func (c *command) tell() {
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *command) show() Command {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.info
}

// wait returns when the command has ended, or ctx.
func (c *command) wait(ctx context.Context) {
	for {
		c.mu.Lock()
		done, changed := c.done, c.changed
		c.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// follow writes the records from the first to the last, and says whether the command ended by itself. Without logs
// it writes trouble only.
func (c *command) follow(ctx context.Context, to *lines, logs bool) bool {
	for from := 0; ; {
		c.mu.Lock()
		more, done, changed := c.records[from:], c.done, c.changed
		ended := c.info.ExitCode != nil
		c.mu.Unlock()
		for _, one := range more {
			if (logs || one.Stream == "error") && to.write(one) != nil {
				return false
			}
		}
		from += len(more)
		if done && len(more) == 0 {
			return ended
		}
		if done {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// lines writes NDJSON, each line at once.
type lines struct {
	w       http.ResponseWriter
	encoder *json.Encoder
}

func newLines(w http.ResponseWriter) *lines {
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	return &lines{w, json.NewEncoder(w)}
}

func (l *lines) write(value any) error {
	if err := l.encoder.Encode(value); err != nil {
		return err
	}
	return http.NewResponseController(l.w).Flush()
}
