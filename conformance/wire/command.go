package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// command is what a case starts in the subject.
type command struct {
	cmd    string
	args   []string
	envs   map[string]string
	cwd    string
	stdin  bool
	pty    bool
	header http.Header
}

// event is one message of Start or Connect.
type event struct {
	Event struct {
		Start *struct {
			PID int `json:"pid"`
		} `json:"start"`
		Data *struct {
			Stdout []byte `json:"stdout"`
			Stderr []byte `json:"stderr"`
			PTY    []byte `json:"pty"`
		} `json:"data"`
		End *exit `json:"end"`
	} `json:"event"`
}

// exit is how a command ended.
type exit struct {
	ExitCode int     `json:"exitCode"`
	Exited   bool    `json:"exited"`
	Status   string  `json:"status"`
	Error    *string `json:"error"`
}

// running is a command whose events are being read.
type running struct{ *stream }

// result is all that a command said.
type result struct {
	stdout, stderr, pty string
	exit                exit
}

// shell is a command line run by bash.
func shell(line string) command {
	return command{cmd: "/bin/bash", args: []string{"-c", line}}
}

// message is the command as the JSON of a StartRequest.
func (c command) message() string {
	process := map[string]any{"cmd": c.cmd, "args": c.args}
	if c.envs != nil {
		process["envs"] = c.envs
	}
	if c.cwd != "" {
		process["cwd"] = c.cwd
	}
	request := map[string]any{"process": process, "stdin": c.stdin}
	if c.pty {
		request["pty"] = map[string]any{"size": map[string]int{"cols": 80, "rows": 24}}
	}
	return encode(request)
}

// start runs a command in the subject.
func (s *Suite) start(ctx context.Context, c command) (*running, error) {
	opened, err := s.open(ctx, "process.Process/Start", c.message(), c.header)
	if err != nil {
		return nil, err
	}
	return &running{opened}, nil
}

// pid reads the first event, which names the process.
func (r *running) pid() (int, error) {
	var first event
	if err := r.next(&first); err != nil {
		return 0, err
	}
	if first.Event.Start == nil || first.Event.Start.PID == 0 {
		return 0, errors.New("the first event is not the start of a process")
	}
	return first.Event.Start.PID, nil
}

// rest reads all events up to the clean end of the stream.
func (r *running) rest() (result, error) {
	var out, err, pty strings.Builder
	var end *exit
	for {
		var e event
		failed := r.next(&e)
		if errors.Is(failed, io.EOF) && end != nil {
			return result{stdout: out.String(), stderr: err.String(), pty: pty.String(), exit: *end}, nil
		}
		if failed != nil {
			return result{stdout: out.String(), stderr: err.String(), pty: pty.String()}, failed
		}
		switch {
		case e.Event.Data != nil:
			out.Write(e.Event.Data.Stdout)
			err.Write(e.Event.Data.Stderr)
			pty.Write(e.Event.Data.PTY)
		case e.Event.End != nil:
			end = e.Event.End
		case e.Event.Start != nil:
			return result{}, fmt.Errorf("a second start event, of process %d", e.Event.Start.PID)
		}
	}
}

// run runs a command to its end, ending the case when it cannot.
func (s *Suite) run(t T, c command) result {
	t.Helper()
	started := s.begin(t, c)
	defer started.close()
	_, err := started.pid()
	must(t, err, "starting "+c.cmd)
	got, err := started.rest()
	must(t, err, "running "+c.cmd)
	return got
}

// begin starts a command whose events the case reads itself.
func (s *Suite) begin(t T, c command) *running {
	t.Helper()
	started, err := s.start(t.Context(), c)
	must(t, err, "starting "+c.cmd)
	return started
}
