package daytona

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// session is a shell that lives as long as it is not deleted. Its commands run one after another, and share its
// folder and variables.
type session struct {
	id    string
	box   *machine.Box
	shell *machine.Process // the leader of a group of its own

	mu       sync.Mutex
	order    []*command
	waiting  map[string]*command // by the mark that ends its output
	ended    bool
	outputs  sync.WaitGroup
	finished sync.WaitGroup
}

// command is one command of a session.
type command struct {
	id, text, folder string
	log              *log

	mu   sync.Mutex
	code *int
	open int // outputs that have not ended
	done chan struct{}
}

// folderOf is where the daemon keeps the pipes of commands.
const folderOf = "/tmp/.daytona"

// The two marks of a stream of logs: what follows is of standard output, or of standard error.
const (
	markOut = "\x01\x01\x01"
	markErr = "\x02\x02\x02"
)

func createSession(c *toolCall) (reply, error) {
	var body struct {
		SessionID string `json:"sessionId"`
	}
	if err := read(c.Request, &body); err != nil {
		return reply{}, err
	}
	if body.SessionID == "" {
		return reply{}, ofDaemon(http.StatusBadRequest, "BAD_REQUEST", "sessionId is required")
	}
	c.sb.mu.Lock()
	_, there := c.sb.sessions[body.SessionID]
	c.sb.mu.Unlock()
	if there {
		return reply{}, ofDaemon(http.StatusConflict, "CONFLICT", "session already exists")
	}
	shell, err := c.box.Start(c.Context(), machine.Command{
		Argv: []string{"/bin/sh", "-c", "exec setsid /bin/sh"}, Stdin: true, Env: c.environment(nil), Dir: c.home(), User: c.sb.facts.User,
	})
	if err != nil {
		return reply{}, ofDaemon(http.StatusInternalServerError, "INTERNAL", err.Error())
	}
	one := &session{id: body.SessionID, box: c.box, shell: shell, waiting: map[string]*command{}}
	one.outputs.Go(func() { one.split(shell.Stdout(), markOut) })
	one.outputs.Go(func() { one.split(shell.Stderr(), markErr) })
	one.finished.Go(one.await)
	c.sb.mu.Lock()
	c.sb.sessions[body.SessionID] = one
	c.sb.mu.Unlock()
	return reply{status: http.StatusCreated}, nil
}

// endOfOutput is what the shell writes on both outputs when a command has ended: it cannot be in what it wrote.
const endOfOutput = "\x1e%s\x1e"

// exec hands a command to the shell.
func (s *session) exec(text string) (*command, error) {
	one := &command{id: uuid.NewString(), text: text, log: newLog(), open: 2, done: make(chan struct{})}
	one.folder = path.Join(folderOf, one.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, ofDaemon(http.StatusGone, "SESSION_ENDED", "session has ended")
	}
	s.order, s.waiting[one.id] = append(s.order, one), one
	mark := fmt.Sprintf(endOfOutput, one.id)
	// Its input is a pipe that is open at both ends, so that it never ends.
	script := fmt.Sprintf("mkdir -p %[1]s && mkfifo -m 600 %[1]s/in\n{ %[2]s\n} 0<>%[1]s/in\nprintf '%%s%%s\\036' '%[3]s' $?; printf '%%s' '%[3]s' >&2\n", one.folder, text, mark)
	if _, err := io.WriteString(s.shell.Stdin(), script); err != nil {
		return nil, ofDaemon(http.StatusGone, "SESSION_ENDED", "session has ended")
	}
	return one, nil
}

// split gives what comes out of the shell to the commands, by their marks.
func (s *session) split(from io.Reader, label string) {
	var held []byte
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		held = s.consume(append(held, buffer[:n]...), label)
		if err != nil {
			return
		}
	}
}

// consume takes what is certain and returns what may be the beginning of a mark.
func (s *session) consume(held []byte, label string) []byte {
	for {
		one := s.current(label)
		if one == nil {
			return nil
		}
		mark := []byte(fmt.Sprintf(endOfOutput, one.id))
		at := bytes.Index(held, mark)
		if at < 0 {
			certain := len(held)
			if start := bytes.LastIndexByte(held, '\x1e'); start >= 0 && len(held)-start < len(mark) {
				certain = start
			}
			one.log.write(label, held[:certain])
			return held[certain:]
		}
		rest := held[at+len(mark):]
		if label == markOut {
			end := bytes.IndexByte(rest, '\x1e')
			if end < 0 {
				one.log.write(label, held[:at])
				return held[at:]
			}
			code := 0
			_, _ = fmt.Sscanf(string(rest[:end]), "%d", &code)
			one.exited(code)
			rest = rest[end+1:]
		}
		one.log.write(label, held[:at])
		one.outputEnded(label)
		held = rest
	}
}

// current is the command whose output on this stream has not ended.
func (s *session) current(label string) *command {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.order {
		if !one.log.over(label) {
			return one
		}
	}
	return nil
}

func (c *command) exited(code int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.code == nil {
		c.code = &code
	}
}

// outputEnded ends one of the two outputs; with the second one the command has ended.
func (c *command) outputEnded(label string) {
	c.log.end(label)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open--; c.open == 0 {
		close(c.done)
	}
}

// exitCode is nil while the command runs.
func (c *command) exitCode() *int {
	select {
	case <-c.done:
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.code
	default:
		return nil
	}
}

// lastWords is how long the output of a shell that has ended is waited for.
const lastWords = time.Second

// await ends what waits for commands when the shell has ended.
func (s *session) await() {
	exit, err := s.shell.Wait(context.Background())
	if err != nil {
		exit.Code = -1
	}
	drained := make(chan struct{})
	s.finished.Go(func() {
		s.outputs.Wait()
		close(drained)
	})
	select {
	case <-drained:
	case <-time.After(lastWords): // something that it started still holds them
	}
	s.mu.Lock()
	s.ended = true
	order := s.order
	s.mu.Unlock()
	for _, one := range order {
		one.exited(exit.Code)
		for _, label := range []string{markOut, markErr} {
			if !one.log.over(label) {
				one.outputEnded(label)
			}
		}
	}
}

// endTime bounds the killing of a session.
const endTime = 10 * time.Second

// end kills the shell and what it started, unless that left its group.
func (s *session) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	_, _, _ = run(ctx, s.box, machine.Command{
		Argv: []string{"/bin/sh", "-c", `kill -TERM -- "-$0"; sleep 0.05; kill -KILL -- "-$0"`, strconv.Itoa(s.shell.PID())},
	})
	s.shell.Close()
	s.finished.Wait()
}

// sessionOf finds the session of a call, and with a command in its path that too.
func (c *toolCall) sessionOf() (*session, *command, error) {
	c.sb.mu.Lock()
	one := c.sb.sessions[c.PathValue("session")]
	c.sb.mu.Unlock()
	if one == nil {
		return nil, nil, ofDaemon(http.StatusNotFound, "PROCESS_NOT_FOUND", "session not found")
	}
	id := c.PathValue("command")
	if id == "" {
		return one, nil, nil
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	found := one.waiting[id]
	if found == nil {
		return nil, nil, ofDaemon(http.StatusNotFound, "PROCESS_NOT_FOUND", "command not found")
	}
	return one, found, nil
}

func execInSession(c *toolCall) (reply, error) {
	var body struct {
		Command  string `json:"command"`
		RunAsync bool   `json:"runAsync"`
		Async    bool   `json:"async"`
	}
	if err := read(c.Request, &body); err != nil {
		return reply{}, err
	}
	one, _, err := c.sessionOf()
	if err != nil {
		return reply{}, err
	}
	if strings.TrimSpace(body.Command) == "" {
		return reply{}, ofDaemon(http.StatusBadRequest, "BAD_REQUEST", "command is required")
	}
	started, err := one.exec(body.Command)
	if err != nil {
		return reply{}, err
	}
	if body.RunAsync || body.Async {
		return reply{http.StatusAccepted, map[string]any{"cmdId": started.id}}, nil
	}
	select {
	case <-started.done:
	case <-c.Context().Done():
		return reply{}, c.Context().Err()
	}
	all, out, failed := started.log.texts()
	return ok(map[string]any{"cmdId": started.id, "exitCode": started.exitCode(), "output": all, "stdout": out, "stderr": failed})
}
