package daytona

import (
	"io"
	"net/http"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

func (c *command) view() map[string]any {
	shown := map[string]any{"id": c.id, "command": c.text}
	if code := c.exitCode(); code != nil {
		shown["exitCode"] = *code
	}
	return shown
}

func (s *session) view() map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	commands := []any{}
	for _, one := range s.order {
		commands = append(commands, one.view())
	}
	return map[string]any{"sessionId": s.id, "commands": commands}
}

func listSessions(c *toolCall) (reply, error) {
	c.sb.mu.Lock()
	defer c.sb.mu.Unlock()
	all := []any{}
	for _, one := range c.sb.sessions {
		all = append(all, one.view())
	}
	return ok(all)
}

func getSession(c *toolCall) (reply, error) {
	one, _, err := c.sessionOf()
	if err != nil {
		return reply{}, err
	}
	return ok(one.view())
}

func deleteSession(c *toolCall) (reply, error) {
	one, _, err := c.sessionOf()
	if err != nil {
		return reply{}, err
	}
	c.sb.mu.Lock()
	delete(c.sb.sessions, one.id)
	c.sb.mu.Unlock()
	one.end()
	return reply{status: http.StatusNoContent}, nil
}

func getCommand(c *toolCall) (reply, error) {
	_, one, err := c.sessionOf()
	if err != nil {
		return reply{}, err
	}
	return ok(one.view())
}

// sendInput writes to the input of a command that runs. There is no way to end that input.
func sendInput(c *toolCall) (reply, error) {
	var body struct {
		Data string `json:"data"`
	}
	if err := read(c.Request, &body); err != nil {
		return reply{}, err
	}
	_, one, err := c.sessionOf()
	if err != nil {
		return reply{}, err
	}
	if one.exitCode() != nil {
		return reply{}, ofDaemon(http.StatusGone, "COMMAND_ALREADY_COMPLETED", "command has already completed")
	}
	// The shell makes the pipe when it comes to the command. Opened for both, it does not wait for a reader: the
	// command may have ended meanwhile.
	p, err := c.box.Start(c.Context(), machine.Command{
		Argv: []string{"/bin/sh", "-c", `until [ -p "$0" ]; do sleep 0.02; done; exec cat 1<>"$0"`, one.folder + "/in"}, Stdin: true, User: c.sb.facts.User,
	})
	if err != nil {
		return reply{}, err
	}
	defer p.Close()
	if _, err := io.WriteString(p.Stdin(), body.Data); err != nil {
		return reply{}, err
	}
	if err := p.Stdin().Close(); err != nil {
		return reply{}, err
	}
	if _, err := p.Wait(c.Context()); err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusNoContent}, nil
}
