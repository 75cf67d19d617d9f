package process

import (
	"errors"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/isthmus/isthmus/envd/daemon/spawn"
	wire "github.com/isthmus/isthmus/envd/process"
)

const killed = syscall.SIGKILL

// running is one live process with what the daemon holds of it.
type running struct {
	pid    uint32
	tag    *string
	config *wire.ProcessConfig
	child  *spawn.Process
	out    fanout
	// stdin is nil when the process has no pipe there; terminal is nil when it has pipes.
	stdin, terminal *input
	// outputs are what the process writes into, as far as the daemon reads it.
	outputs []output

	once sync.Once
	// signalled is closed once a client or a time limit has signalled the process. Its end is then not
	// delayed by descendants that hold its output open.
	signalled chan struct{}
	// gone is closed once the process is known as live no more.
	gone chan struct{}
}

// signal signals the one process, never its group. A process that has ended but whose output is still held
// open by descendants is let go, and that counts as success: the caller wanted it to end.
func (r *running) signal(sig syscall.Signal) error {
	r.once.Do(func() { close(r.signalled) })
	if err := r.child.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// follow has the process's output read, and its end told to everybody once it has come. At the deadline, if there
// is one, it kills the process, whether or not anybody still follows it. Nothing waits for the end meanwhile: a
// goroutine for each process would be a good part of what an idle one costs.
func (s *Service) follow(r *running, deadline time.Time) {
	var limit *time.Timer
	if !deadline.IsZero() {
		limit = time.AfterFunc(time.Until(deadline), func() { _ = r.signal(killed) })
	}
	drained := s.pump(r.outputs, &r.out)
	s.work.Add(1)
	r.child.AfterDone(func() {
		defer s.work.Done()
		s.ended(r, drained)
		if limit != nil {
			limit.Stop()
		}
	})
}

// ended tells everybody how a process ended, once its output has ended too or nobody wants to wait for it.
func (s *Service) ended(r *running, drained <-chan struct{}) {
	select {
	case <-drained:
	case <-r.signalled:
	}
	end := endOf(r.child.Status())
	s.table.end(r, end)
	close(r.gone)
	s.config.Journal.Info("process ended", "pid", strconv.Itoa(r.child.PID),
		"exit_code", strconv.Itoa(int(end.GetEnd().GetExitCode())), "status", end.GetEnd().GetStatus())
	for _, o := range r.outputs {
		o.interrupt()
	}
	<-drained
	r.release()
	r.out.finish(end)
}

func (r *running) release() {
	if r.stdin != nil {
		r.stdin.close()
	}
	for _, o := range r.outputs {
		_ = o.file.Close()
	}
}

// endOf words an end as Go's os.ProcessState does: clients compare the texts.
func endOf(status syscall.WaitStatus) *wire.ProcessEvent {
	end := &wire.ProcessEvent_EndEvent{ExitCode: -1}
	switch {
	case status.Exited():
		end.ExitCode, end.Exited = int32(status.ExitStatus()), true
		end.Status = "exit status " + strconv.Itoa(status.ExitStatus())
	case status.Signaled():
		end.Status = "signal: " + status.Signal().String()
	}
	if status.CoreDump() {
		end.Status += " (core dumped)"
	}
	if end.ExitCode != 0 {
		end.Error = &end.Status
	}
	return &wire.ProcessEvent{Event: &wire.ProcessEvent_End{End: end}}
}
