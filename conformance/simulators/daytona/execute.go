package daytona

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"time"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// environment is that of programs in a sandbox.
func (c *toolCall) environment(more map[string]string) map[string]string {
	env := map[string]string{"HOME": c.home(), "USER": c.sb.facts.User}
	maps.Copy(env, c.sb.facts.Env)
	maps.Copy(env, more)
	return env
}

// execute runs a command to its end. What it writes to its two outputs is merged.
func execute(c *toolCall) (reply, error) {
	var body struct {
		Command string            `json:"command"`
		Cwd     string            `json:"cwd"`
		Envs    map[string]string `json:"envs"`
		Timeout int               `json:"timeout"`
	}
	if err := read(c.Request, &body); err != nil {
		return reply{}, err
	}
	if body.Command == "" {
		return reply{}, ofDaemon(http.StatusBadRequest, "BAD_REQUEST", "empty command")
	}
	dir := c.home()
	if body.Cwd != "" {
		dir = c.absolute(body.Cwd)
	}
	return c.runToEnd(body.Timeout, machine.Command{
		Argv: []string{"/bin/sh", "-c", "exec 2>&1\n" + body.Command}, Env: c.environment(body.Envs), Dir: dir, User: c.sb.facts.User,
	})
}

// codeRun runs a text in the language that it is written in.
func codeRun(c *toolCall) (reply, error) {
	var body struct {
		Code     string            `json:"code"`
		Language string            `json:"language"`
		Argv     []string          `json:"argv"`
		Envs     map[string]string `json:"envs"`
		Timeout  int               `json:"timeout"`
	}
	if err := read(c.Request, &body); err != nil {
		return reply{}, err
	}
	program := map[string]string{"python": "python3 -c", "javascript": "node -e", "typescript": "node -e"}[body.Language]
	if program == "" {
		return reply{}, ofDaemon(http.StatusBadRequest, "BAD_REQUEST", "unsupported language: "+body.Language)
	}
	argv := append([]string{"/bin/sh", "-c", `exec 2>&1; exec ` + program + ` "$0" "$@"`, body.Code}, body.Argv...)
	return c.runToEnd(body.Timeout, machine.Command{Argv: argv, Env: c.environment(body.Envs), Dir: c.home(), User: c.sb.facts.User})
}

// runToEnd runs a command for so many seconds at most; 0: no bound.
func (c *toolCall) runToEnd(seconds int, command machine.Command) (reply, error) {
	ctx := c.Context()
	if seconds > 0 {
		bounded, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
		defer cancel()
		ctx = bounded
	}
	code, out, err := run(ctx, c.box, command)
	if seconds > 0 && c.Context().Err() == nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return reply{}, ofDaemon(http.StatusRequestTimeout, "PROCESS_EXECUTION_TIMEOUT", "command execution timeout")
	}
	if err != nil {
		return reply{}, ofDaemon(http.StatusBadRequest, "BAD_REQUEST", err.Error())
	}
	return ok(map[string]any{"exitCode": code, "result": string(out)})
}
