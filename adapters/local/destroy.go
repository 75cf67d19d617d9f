//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local/disk"
	"github.com/isthmus/isthmus/adapters/local/proc"
)

// Destroy ends a box and removes everything of it. It returns when nothing is left; a box that is not there
// is success.
func (l *Local) Destroy(ctx context.Context, boxID string) error {
	if !boxIDs.MatchString(boxID) {
		return nil
	}
	done, err := l.turns.take(ctx, boxID)
	if err != nil {
		return err
	}
	defer done()
	left := l.boxes.removable(boxID)
	if left == nil {
		return nil
	}
	if err := l.clear(ctx, left); err != nil {
		return asAdapterError(ctx, err, "something of the sandbox is left on this machine: kill it again")
	}
	l.boxes.remove(boxID)
	return nil
}

// end kills PID 1, and with it every process of the box, and waits for both. What this process holds of the
// box is given back only then: until it has ended, another try must be possible.
func (l *Local) end(ctx context.Context, b *box) error {
	if err := l.endBare(ctx, b); err != nil {
		return err
	}
	b.as().record.Cgroup.Thaw()
	// The file's own lock keeps the descriptor from being closed under us; one that is closed already has
	// ended.
	if raw, err := b.pidfd.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.PidfdSendSignal(int(fd), unix.SIGKILL, nil, 0) })
	}
	select {
	case <-b.unwatched:
	case <-ctx.Done():
		return fmt.Errorf("PID 1 does not end: %w", ctx.Err())
	}
	b.work.Wait()
	b.close()
	return nil
}

// discard removes what a record names. It serves a box that ended, a create that failed and the remains of a
// facade that died alike; a second time finds nothing.
func (l *Local) discard(ctx context.Context, r record, path string) error {
	if err := kill(ctx, r); err != nil {
		return err
	}
	if l.tier.bare {
		r.Cgroup.Kill() // what envd could not take with it
	}
	problems := []error{r.Cgroup.Remove(ctx)}
	if r.Device != "" {
		// Without a name the image is not written back by the unmount that is going on.
		image := filepath.Join(path, imageName)
		_ = os.Remove(image)
		problems = append(problems, disk.WaitDetached(ctx, r.Device, image))
	}
	err := errors.Join(problems...)
	if err == nil { // the record stays until everything else is gone
		err = l.removeAll(ctx, path)
	}
	if err == nil && l.ids != nil {
		err = l.ids.Release(r.BoxID)
	}
	return err
}

// kill ends a PID 1 that may still run, known by its record only.
func kill(ctx context.Context, r record) error {
	fd, err := r.Process.Open()
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	r.Cgroup.Thaw()
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	if err := proc.Await(ctx, fd); err != nil {
		return err
	}
	_, _ = unix.Wait4(r.Process.PID, nil, unix.WNOHANG, nil) // of an earlier Local of this process, if of this process at all
	return nil
}

// Ended returns a channel that is closed when the box has ended, however it ended. A pause is none: after it the
// channel says nothing any more, and the resumed box has another.
func (l *Local) Ended(boxID string) (<-chan struct{}, error) {
	b, err := l.boxes.get(boxID)
	if err != nil {
		return nil, err
	}
	return b.told, nil
}

var _ adapters.Watcher = (*Local)(nil)
