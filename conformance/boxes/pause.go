//go:build linux

package boxes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters"
)

// Pause stops a box. As a file system its processes are ended; with its memory they are stopped where they are.
func (c *Cloud) Pause(ctx context.Context, boxID string, level adapters.Level) error {
	m, err := c.find(boxID)
	if err != nil {
		return err
	}
	m.turn.Lock()
	defer m.turn.Unlock()
	m.mu.Lock()
	current, already, over := m.now, m.paused != "", closed(m.ended)
	if !already && !over {
		m.paused = level
		if m.timer != nil {
			m.timer.Stop()
		}
	}
	m.mu.Unlock()
	switch {
	case over:
		return adapters.Errorf(adapters.KindNotFound, "the box %s has ended", boxID)
	case already:
		return nil
	case level == adapters.LevelMemory:
		err = m.signal(unix.SIGSTOP)
	default:
		err = current.end(ctx)
	}
	if err != nil {
		return adapters.Wrap(adapters.KindUnknownOutcome, err, "the box may or may not be paused")
	}
	return nil
}

// Resume brings a box back: as a file system it is started anew, from its memory its processes go on.
func (c *Cloud) Resume(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	m, err := c.find(spec.BoxID)
	if err != nil {
		return adapters.Box{}, err
	}
	m.turn.Lock()
	defer m.turn.Unlock()
	m.mu.Lock()
	level, over := m.paused, closed(m.ended)
	m.mu.Unlock()
	switch {
	case over:
		return adapters.Box{}, adapters.Errorf(adapters.KindNotFound, "the box %s has ended", spec.BoxID)
	case level == "":
		return m.describe(), nil
	case level == adapters.LevelMemory:
		err = m.signal(unix.SIGCONT)
	default:
		m.spec.Envd.Deadline = spec.Envd.Deadline
		err = m.start(ctx, c.root)
	}
	if err != nil {
		return adapters.Box{}, adapters.Wrap(adapters.KindUnavailable, err, "the box could not be resumed: it is still paused")
	}
	m.mu.Lock()
	m.paused = ""
	m.mu.Unlock()
	m.until(spec.Envd.Deadline)
	return m.describe(), nil
}

// stopTime bounds the wait until every process of a box has stopped.
const stopTime = 10 * time.Second

// signal stops every process of the box, or has all of them go on. Its first one is left out: it does nothing, and a
// stopped one could not end. What nsenter left outside to wait for a program stops with it by itself, and must go on
// after it: the box could not end while that does not collect the program.
func (m *machine) signal(s unix.Signal) error {
	within, outside := func(p proc) bool { return p.inside }, func(p proc) bool { return !p.inside }
	if err := m.signalAll(s, within); err != nil {
		return err
	}
	return m.signalAll(s, outside)
}

// signalAll signals the chosen processes until all of them obey, also those that are only just being started.
func (m *machine) signalAll(s unix.Signal, chosen func(proc) bool) error {
	for end := time.Now().Add(stopTime); ; {
		processes, err := family(m.process())
		if err != nil {
			return err
		}
		moving := 0
		for _, p := range processes {
			if !chosen(p) || p.obeys(s) {
				continue
			}
			moving++
			_ = unix.Kill(p.pid, s) // one that has just ended needs no signal
		}
		if moving == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d processes do not take the signal %s", moving, s)
		}
		time.Sleep(time.Millisecond) // until the kernel has delivered it
	}
}

// proc is one process, by its id outside.
type proc struct {
	pid    int
	state  string
	inside bool // the box's namespace
}

// family lists the processes in the namespace of a box's first one, but for that one, and their parents outside.
func family(first int) ([]proc, error) {
	space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", first))
	if err != nil {
		return nil, err
	}
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var found []proc
	for _, entry := range entries {
		pid, err := strconv.Atoi(filepath.Base(entry))
		if theirs, ended := os.Readlink(filepath.Join(entry, "ns/pid")); err != nil || ended != nil || theirs != space || pid == first {
			continue
		}
		state, parent := status(pid)
		found = append(found, proc{pid: pid, state: state, inside: true})
		if theirs, ended := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", parent)); ended == nil && theirs != space {
			state, _ := status(parent)
			found = append(found, proc{pid: parent, state: state})
		}
	}
	return found, nil
}

// status returns a process's state and parent; nothing when it has ended.
func status(pid int) (state string, parent int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	_, _ = fmt.Sscan(rest, &state, &parent)
	return state, parent
}

// obeys reports whether a process is as the signal wants it. One that has ended is.
func (p proc) obeys(s unix.Signal) bool {
	switch p.state {
	case "Z", "X", "":
		return true
	case "T", "t":
		return s == unix.SIGSTOP
	}
	return s == unix.SIGCONT
}
