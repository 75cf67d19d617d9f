package keep

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// frozenTime bounds the wait for all programs to stand still.
const frozenTime = 10 * time.Second

// Freeze stops all programs of the box but this one and others of its file, which carry streams for the facade. This
// process must be the first one of the box.
func Freeze(ctx context.Context) error {
	if os.Getpid() != 1 {
		return errors.New("only the first process of a box can stop all others")
	}
	ctx, cancel := context.WithTimeout(ctx, frozenTime)
	defer cancel()
	for {
		moving, err := signal(syscall.SIGSTOP)
		if err != nil || moving == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.New("programs of the box do not stand still")
		case <-time.After(time.Millisecond):
		}
	}
}

// Thaw lets them go on.
func Thaw() error {
	_, err := signal(syscall.SIGCONT)
	return err
}

// signal sends a signal to all programs that Freeze is for, and returns how many of them were not stopped then.
func signal(s syscall.Signal) (moving int, err error) {
	self, err := os.Stat("/proc/self/exe")
	if err != nil {
		return 0, err
	}
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	for _, folder := range folders {
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if file, err := os.Stat(folder + "/exe"); err == nil && os.SameFile(self, file) {
			continue
		}
		if stands(folder) == (s == syscall.SIGSTOP) {
			continue
		}
		moving++
		if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			return moving, err
		}
	}
	return moving, nil
}

// stands reports whether a process is stopped, or has ended (proc(5), the third field of stat).
func stands(folder string) bool {
	text, err := os.ReadFile(folder + "/stat")
	if err != nil {
		return true
	}
	_, rest, found := bytes.Cut(text[bytes.LastIndexByte(text, ')')+1:], []byte(" "))
	return !found || len(rest) == 0 || bytes.IndexByte([]byte("TtZX"), rest[0]) >= 0
}
