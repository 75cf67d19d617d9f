//go:build linux

// Package proctree looks at the processes below another one, and ends them: what a box is made of where it
// has no process namespace or no control group.
package proctree

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// tick is the unit of processor times in /proc, the same on every Linux.
const tick = time.Second / 100

// Stat is what /proc/PID/stat says of one process. Times include those of children that were collected.
type Stat struct {
	Parent   int
	Start    uint64 // ticks since boot
	CPU      time.Duration
	Resident int64 // bytes
	Dead     bool  // ended, and not collected yet
}

// Read reads one process. The second field is the program's name in brackets and may hold anything.
func Read(pid int) (Stat, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Stat{}, err
	}
	const (
		firstField = 3 // of what follows the name: the state
		parent     = 4 - firstField
		userTime   = 14 - firstField // four times follow each other
		startTime  = 22 - firstField
		resident   = 24 - firstField
	)
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) <= resident {
		return Stat{}, os.ErrNotExist
	}
	s := Stat{Dead: fields[0] == "Z" || fields[0] == "X"}
	s.Parent, _ = strconv.Atoi(fields[parent])
	s.Start, _ = strconv.ParseUint(fields[startTime], 10, 64)
	pages, _ := strconv.ParseInt(fields[resident], 10, 64)
	s.Resident = pages * int64(os.Getpagesize())
	for _, field := range fields[userTime : userTime+4] {
		ticks, _ := strconv.ParseInt(field, 10, 64)
		s.CPU += time.Duration(ticks) * tick
	}
	return s, nil
}

// Tree returns a process and all below it, as far as they run. It is empty when the process is gone.
func Tree(top int) (map[int]Stat, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	all := map[int]Stat{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if s, err := Read(pid); err == nil {
			all[pid] = s
		}
	}
	tree := map[int]Stat{}
	for pid, s := range all {
		if !s.Dead && descends(all, pid, top) {
			tree[pid] = s
		}
	}
	return tree, nil
}

// descends reports whether pid is top or below it. The snapshot is not taken at one instant: steps are
// bounded, should it hold a circle.
func descends(all map[int]Stat, pid, top int) bool {
	for range len(all) {
		if pid == top {
			return true
		}
		s, ok := all[pid]
		if !ok {
			return false
		}
		pid = s.Parent
	}
	return false
}

// EndBelow ends every process below top, which must be one that orphans come to. They are stopped until no
// new one is found, so that none can start another behind our back, and then killed.
func EndBelow(ctx context.Context, top int) error {
	stopped := map[int]Stat{}
	for ctx.Err() == nil {
		tree, err := Tree(top)
		if err != nil {
			return err
		}
		delete(tree, top)
		fresh := false
		for pid, s := range tree {
			if stopped[pid].Start == s.Start {
				continue
			}
			fresh = true
			stopped[pid] = s
			_ = unix.Kill(pid, unix.SIGSTOP)
		}
		if fresh {
			continue
		}
		for pid := range tree {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		return nil
	}
	return ctx.Err()
}
