//go:build linux

package gvisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local/proc"
)

// box is one box that this process knows. Without a pidfd it is only what is left of one, to be removed.
type box struct {
	record record
	path   string
	pidfd  *os.File
	// ended is closed when the sandbox's process is gone, and with it the box.
	ended chan struct{}
	// attended ends with the box, and when this process lets go of it; work is what runs until then.
	attended context.Context
	leave    context.CancelFunc
	work     sync.WaitGroup
}

// carryAgain is the pause before a box's traffic is tried again.
const carryAgain = time.Second

func (p *place) boxPath(id string) string { return filepath.Join(p.dir, dirBoxes, id) }

func (b *box) alive() bool {
	if b.pidfd == nil {
		return false
	}
	select {
	case <-b.ended:
		return false
	default:
		return true
	}
}

func (b *box) describe() adapters.Box { return b.record.describe(b.alive()) }

// watched is a box whose process runs, with somebody who waits for its end. It takes the pidfd over.
func (p *place) watched(r record, path string, pidfd int) *box {
	b := &box{record: r, path: path, pidfd: os.NewFile(uintptr(pidfd), "pidfd"), ended: make(chan struct{})}
	b.attended, b.leave = context.WithCancel(p.background)
	p.attend(b, func(ctx context.Context) {
		if err := b.wait(ctx); err == nil && ctx.Err() == nil {
			close(b.ended)
		}
		b.leave()
	})
	return b
}

// attend runs work for a box until the box ends or this process lets go of it.
func (p *place) attend(b *box, work func(ctx context.Context)) {
	p.running.Add(1)
	b.work.Go(func() {
		defer p.running.Done()
		work(b.attended)
	})
}

// wait returns when the sandbox's process has ended, or ctx. It parks in the runtime's poller.
func (b *box) wait(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { _ = b.pidfd.SetReadDeadline(time.Unix(1, 0)) })()
	raw, err := b.pidfd.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Read(func(fd uintptr) bool { return proc.Ended(int(fd)) })
}

// serve carries the traffic of a box that has the internet from now on, and returns when it is being led out.
func (p *place) serve(ctx context.Context, b *box) error {
	if !b.record.Internet {
		return nil
	}
	ready := make(chan error, 1)
	p.attend(b, func(ctx context.Context) {
		first := ready
		for ctx.Err() == nil {
			err := p.carry(ctx, b.record.Sandbox.PID, first)
			first = make(chan error, 1) // nobody waits any more
			if err == nil || ctx.Err() != nil {
				continue
			}
			p.log.Warn("traffic of a box", "box", b.record.BoxID, "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(carryAgain):
			}
		}
	})
	select {
	case err := <-ready:
		return err
	case <-b.attended.Done():
		return errors.New("the sandbox ended at once")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// clear removes a box, whatever it came to. When it fails, another try must be possible.
func (p *place) clear(ctx context.Context, b *box) error {
	ctx, cancel := context.WithTimeout(ctx, cleanTime)
	defer cancel()
	if err := p.end(ctx, b); err != nil {
		return err
	}
	if err := emptied(ctx, b.record); err != nil {
		return err
	}
	for _, stray := range strayNames(b.record.BoxID) {
		_ = os.Remove(stray)
	}
	return os.RemoveAll(b.path)
}

// end kills the sandbox's process and waits until it is gone.
func (p *place) end(ctx context.Context, b *box) error {
	b.record.Cgroup.Thaw()
	fd, err := b.record.Sandbox.Open()
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return err
	default:
		err = errors.Join(kill(fd), proc.Await(ctx, fd), unix.Close(fd))
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the sandbox's process does not end: %w", err)
	}
	if b.pidfd != nil {
		b.work.Wait()
		_ = b.pidfd.Close()
	}
	return nil
}

// emptied kills what else is in the box's group, until there is nothing and the group is removed: a runsc that was
// at work when its facade died may start the box still.
func emptied(ctx context.Context, r record) error {
	const step = 50 * time.Millisecond
	for {
		r.Cgroup.Kill()
		try, cancel := context.WithTimeout(ctx, step)
		err := r.Cgroup.Remove(try)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}
