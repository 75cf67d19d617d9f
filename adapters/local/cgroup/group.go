//go:build linux

package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// period is the scheduler's accounting period in microseconds.
const period = 100_000

// socketShare is the part of a box's memory limit, one of so many, that the buffers of its sockets may hold beside
// it in version 1; version 2 counts them as memory. Above it they shrink, they are not refused.
const socketShare = 8

// Group is one box's control group. It is stored in the box's record, so that a later process can measure
// and remove it.
type Group struct {
	Version int `json:"version"`
	// Paths are by controller in version 1; version 2 has one, under "".
	Paths map[string]string `json:"paths"`
}

// Plan names the group without making it, so that it can be written down first.
func (t *Tree) Plan(name string) *Group {
	g := &Group{Version: t.version, Paths: map[string]string{}}
	for controller, root := range t.roots {
		g.Paths[controller] = filepath.Join(root, name)
	}
	return g
}

// Make makes the group with limits. When it fails, nothing of it is left.
func (g *Group) Make(l Limits) error {
	for _, path := range g.Paths {
		if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return errors.Join(fmt.Errorf("make the control group: %w", err), g.rmdir())
		}
	}
	if err := g.limit(l); err != nil {
		return errors.Join(err, g.rmdir())
	}
	return nil
}

// limit writes the ceilings. What says "optional" is missing in some kernels.
func (g *Group) limit(l Limits) error {
	memory, pids := strconv.FormatInt(l.MemoryBytes, 10), strconv.Itoa(l.Processes)
	quota := strconv.Itoa(l.CPUs * period)
	buffers := strconv.FormatInt(l.MemoryBytes/socketShare, 10)
	type setting struct {
		controller, file, value string
		optional                bool
	}
	settings := []setting{
		{"memory", "memory.limit_in_bytes", memory, false},
		{"memory", "memory.memsw.limit_in_bytes", memory, true},
		{"memory", "memory.kmem.tcp.limit_in_bytes", buffers, true},
		{"pids", "pids.max", pids, false},
		{"cpu", "cpu.cfs_period_us", strconv.Itoa(period), false},
		{"cpu", "cpu.cfs_quota_us", quota, false},
	}
	if g.Version == 2 {
		settings = []setting{
			{"", "memory.max", memory, false},
			{"", "memory.swap.max", "0", true},
			{"", "pids.max", pids, false},
			{"", "cpu.max", quota + " " + strconv.Itoa(period), false},
		}
	}
	for _, s := range settings {
		path, ok := g.Paths[s.controller]
		if !ok {
			continue
		}
		if err := os.WriteFile(filepath.Join(path, s.file), []byte(s.value), 0); err != nil && !s.optional {
			return fmt.Errorf("limit %s: %w", s.file, err)
		}
	}
	return nil
}

// Open returns the version 2 folder, into which a process can be cloned; nil in version 1.
func (g *Group) Open() (*os.File, error) {
	if g == nil || g.Version != 2 {
		return nil, nil
	}
	return os.Open(g.Paths[""])
}

// Freeze stops every process of the group and returns when all have stopped. Thaw undoes it, also after an error.
func (g *Group) Freeze(ctx context.Context) error {
	file, order, state, want := filepath.Join(g.Paths[""], "cgroup.freeze"), "1", filepath.Join(g.Paths[""], "cgroup.events"), "frozen 1"
	if g.Version == 1 {
		file = filepath.Join(g.Paths["freezer"], "freezer.state")
		order, state, want = "FROZEN", file, "FROZEN"
	}
	for {
		if err := os.WriteFile(file, []byte(order), 0); err != nil {
			return fmt.Errorf("freeze the control group: %w", err)
		}
		text, err := os.ReadFile(state)
		if err != nil {
			return fmt.Errorf("freeze the control group: %w", err)
		}
		if strings.Contains("\n"+string(text), "\n"+want) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("freeze the control group: %w", ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

// Freezes reports whether groups of this tree can be frozen.
func (t *Tree) Freezes() bool { return t != nil && (t.version == 2 || t.roots["freezer"] != "") }

// Thaw lets frozen processes run: in version 1 a frozen process does not even die.
func (g *Group) Thaw() {
	if g == nil {
		return
	}
	if path, ok := g.Paths["freezer"]; ok {
		_ = os.WriteFile(filepath.Join(path, "freezer.state"), []byte("THAWED"), 0)
	}
	if path, ok := g.Paths[""]; ok {
		_ = os.WriteFile(filepath.Join(path, "cgroup.freeze"), []byte("0"), 0)
	}
}

// Kill kills every process in the group once; for those that the kernel does not end with a PID 1. Not this process: in
// version 1 a thread of it that started what is in the group may be there for a moment longer.
func (g *Group) Kill() {
	if g == nil {
		return
	}
	for _, path := range g.Paths {
		list, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		for _, field := range strings.Fields(string(list)) {
			if pid, err := strconv.Atoi(field); err == nil && pid != os.Getpid() {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
	}
}

// Remove removes the group, whose processes must have ended; the kernel counts them for a moment longer. A
// group that is not there is success.
func (g *Group) Remove(ctx context.Context) error {
	if g == nil {
		return nil
	}
	for {
		err := g.rmdir()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("remove the control group: %w", err)
		case <-time.After(time.Millisecond):
		}
	}
}

func (g *Group) rmdir() error {
	var problems []error
	for _, path := range g.Paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}
