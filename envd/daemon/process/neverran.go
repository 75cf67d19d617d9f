package process

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	wire "github.com/isthmus/isthmus/envd/process"
)

// firstPhantom is the smallest pid of a process that never ran. The kernel gives no pid this high on any
// machine, so that it means nothing else inside the sandbox.
const firstPhantom = 1 << 22

// What a shell exits with when it cannot execute a program.
const (
	exitNotFound      = 127
	exitNotExecutable = 126
)

// neverRan is the life of a process whose program could not be executed: it says why, and has exited.
func (s *Service) neverRan(ctx context.Context, p *plan) *started {
	pid := firstPhantom + s.phantom.Add(1)%(1<<30)
	code := exitNotExecutable
	if errors.Is(p.failure, syscall.ENOENT) {
		code = exitNotFound
	}
	end := endOf(syscall.WaitStatus(code << 8))
	r := &running{pid: pid, tag: p.msg.Tag}
	events := r.out.subscribe(ctx)
	r.out.publish(func() message { return message{event: p.complaint()} })
	s.table.keepExit(pid, r.tag, end)
	s.config.Journal.Info("process could not be executed", "cmd", p.text(), "user", p.user.Name,
		"exit_code", strconv.Itoa(code))
	r.out.finish(end)
	return &started{pid: pid, events: events}
}

// complaint is what a program that cannot be executed leaves on standard error, or on the terminal.
func (p *plan) complaint() *wire.ProcessEvent {
	var errno syscall.Errno
	_ = errors.As(p.failure, &errno)
	reason := errno.Error()
	text := fmt.Sprintf("envd: '%s': %s%s", p.msg.GetProcess().GetCmd(), strings.ToUpper(reason[:1]), reason[1:])
	if p.msg.GetPty() != nil {
		return terminalEvent([]byte(text + "\r\n"))
	}
	return stderrEvent([]byte(text + "\n"))
}
