// Package spawn starts processes and collects their ends, as PID 1 of a sandbox and as an ordinary process.
//
// PID 1 must wait for every child, also for orphans that it never started. Waiting for any child beside os/exec
// steals os/exec's children (measured: 160 wrong exit codes in 1,200 commands), so there is one reaper and one
// fork here, under one lock, and nothing else in the daemon may start a process.
package spawn

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Reaper starts processes and collects them. It is safe for use by several goroutines; Run must be running
// for a process to be seen as ended.
type Reaper struct {
	orphans bool
	limit   uint64
	signals chan os.Signal
	deaf    chan os.Signal // takes what this process was told to ignore

	// forking is held for reading from before a fork until its pid is in children, so that the reaper, which
	// holds it for writing, never collects a child that nobody knows yet.
	forking  sync.RWMutex
	mu       sync.Mutex
	children map[int]*Process
}

// NewReaper makes a reaper. With orphans it collects every child, as PID 1 must; without, only those that it
// started, so that it can share a process with others.
func NewReaper(orphans bool) *Reaper {
	r := &Reaper{orphans: orphans, signals: make(chan os.Signal, 1), deaf: make(chan os.Signal, 1), children: map[int]*Process{}}
	signal.Notify(r.signals, syscall.SIGCHLD)
	r.catchIgnored()
	return r
}

// catchIgnored catches and drops every signal that this process inherited as ignored (from nohup, or as a shell's
// background job). An ignored signal stays ignored in every program that is started; a caught one does not. It lasts
// for the life of the process: given back, the signal would be ignored again, and the runtime would not say so.
func (r *Reaper) catchIgnored() {
	for number := syscall.SIGHUP; number <= syscall.SIGSYS; number++ {
		if signal.Ignored(number) {
			signal.Notify(r.deaf, number)
		}
	}
}

// LimitProcesses bounds the processes of each user that are started from now on; 0 is no limit. The daemon
// itself stays without one: with all of them used up it must still be able to make a thread.
func (r *Reaper) LimitProcesses(n uint64) { r.limit = n }

// Run collects ended children until ctx ends. Processes that run then are left alone.
func (r *Reaper) Run(ctx context.Context) {
	defer signal.Stop(r.signals)
	r.collect()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.signals:
			r.collect()
		}
	}
}

// collect takes every child that has ended. One SIGCHLD may stand for many.
func (r *Reaper) collect() {
	r.forking.Lock()
	defer r.forking.Unlock()
	if r.orphans {
		for r.collectOne(-1) {
		}
		return
	}
	for _, pid := range r.pids() {
		r.collectOne(pid)
	}
}

func (r *Reaper) pids() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	pids := make([]int, 0, len(r.children))
	for pid := range r.children {
		pids = append(pids, pid)
	}
	return pids
}

func (r *Reaper) collectOne(which int) bool {
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(which, &status, syscall.WNOHANG, nil)
	for err == syscall.EINTR {
		pid, err = syscall.Wait4(which, &status, syscall.WNOHANG, nil)
	}
	if err != nil || pid <= 0 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.children[pid]; p != nil {
		delete(r.children, pid)
		p.status = status
		close(p.done)
		for _, do := range p.after {
			go do()
		}
	}
	return true
}

// add makes a started child known. The caller holds forking for reading.
func (r *Reaper) add(pid int) *Process {
	p := &Process{PID: pid, reaper: r, done: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.children[pid] = p
	return p
}

// KillAll kills every process that the reaper started and that still runs, for the end of the daemon.
func (r *Reaper) KillAll() {
	r.forking.RLock()
	defer r.forking.RUnlock()
	for _, pid := range r.pids() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// Process is one process that a Reaper started.
type Process struct {
	// PID is the kernel's number of it, in the daemon's own namespace.
	PID    int
	reaper *Reaper
	done   chan struct{}
	status syscall.WaitStatus
	after  []func() // under the reaper's mu
}

// Done is closed when the process has ended and was collected.
func (p *Process) Done() <-chan struct{} { return p.done }

// AfterDone has a function called, in a goroutine of its own, when Done is closed: at once if it is.
func (p *Process) AfterDone(do func()) {
	p.reaper.mu.Lock()
	defer p.reaper.mu.Unlock()
	select {
	case <-p.done:
		go do()
	default:
		p.after = append(p.after, do)
	}
}

// Status is how it ended. It may be read once Done is closed.
func (p *Process) Status() syscall.WaitStatus { return p.status }

// Signal signals this one process, never its group. The error is os.ErrProcessDone once it was collected:
// its number may belong to another process by then.
func (p *Process) Signal(sig syscall.Signal) error {
	// The reaper holds this lock while it collects, so that the number cannot go to another process meanwhile.
	p.reaper.forking.RLock()
	defer p.reaper.forking.RUnlock()
	select {
	case <-p.done:
		return os.ErrProcessDone
	default:
	}
	return syscall.Kill(p.PID, sig)
}
