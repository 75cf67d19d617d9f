//go:build linux

// Package proc names one process for as long as the machine runs, which a number alone does not: so a facade that
// starts again finds the processes of an earlier one, and never takes another process for one of them.
package proc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters/local/inside/proctree"
)

// ID is the name of a process.
type ID struct {
	PID    int    `json:"pid"`
	Start  uint64 `json:"start"` // clock ticks since boot, field 22 of /proc/PID/stat
	BootID string `json:"bootID"`
}

// Identify reads what makes pid unmistakable.
func Identify(pid int) (ID, error) {
	stat, err := proctree.Read(pid)
	if err != nil {
		return ID{}, err
	}
	boot, err := bootID()
	if err != nil {
		return ID{}, err
	}
	return ID{PID: pid, Start: stat.Start, BootID: boot}, nil
}

// Open returns a pidfd of the process, or os.ErrNotExist when it has ended, collected or not. Any other error says
// nothing about the process: it may run. The check comes after the pidfd is open: from then on the pid cannot
// become another process's without the pidfd knowing.
func (p ID) Open() (int, error) {
	if p.PID <= 0 {
		return -1, os.ErrNotExist
	}
	fd, err := unix.PidfdOpen(p.PID, unix.PIDFD_NONBLOCK)
	if err != nil {
		if errors.Is(err, unix.ESRCH) || p.replaced() { // a thread's number has no pidfd
			return -1, os.ErrNotExist
		}
		return -1, fmt.Errorf("open a descriptor of process %d: %w", p.PID, err)
	}
	now, err := Identify(p.PID)
	switch {
	case Ended(fd), missing(err), err == nil && now != p:
		err = os.ErrNotExist
	case err == nil:
		return fd, nil
	}
	_ = unix.Close(fd)
	return -1, err
}

// replaced reports whether it is certain that the pid is not this process's any more.
func (p ID) replaced() bool {
	now, err := Identify(p.PID)
	return missing(err) || err == nil && now != p
}

// Ended asks a pidfd, without waiting, whether its process has ended.
func Ended(fd int) bool {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, 0)
	return err == nil && n == 1
}

// Await polls a pidfd in short steps until its process has ended, so that ctx is honoured.
func Await(ctx context.Context, fd int) error {
	const step = 20 // milliseconds
	for ctx.Err() == nil {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(poll, step); err == nil && n == 1 {
			return nil
		}
	}
	return ctx.Err()
}

// missing reports whether a failed look at /proc says that there is no such process.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) }

func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}
