//go:build linux

package local

import (
	"context"
	"os"

	"golang.org/x/sys/unix"
)

// newBox makes the value for a box whose PID 1 runs. Secrets that are not known come from the configuration.
func (l *Local) newBox(r record, path string, pidfd int, transport, control string) (*box, error) {
	if err := unix.SetNonblock(pidfd, true); err != nil { // so that the runtime's poller takes it
		_ = unix.Close(pidfd)
		return nil, err
	}
	if control == "" && l.config.Secrets != nil {
		transport, control = l.config.Secrets(r.BoxID)
	}
	b, err := newBox(role{record: r, path: path, transport: transport, control: control}, pidfd)
	if err != nil {
		return nil, err
	}
	b.attended, b.leave = context.WithCancel(l.background)
	return b, nil
}

// watch tells everybody when the box has ended, and reaps PID 1 when it is a child of this process.
func (l *Local) watch(b *box, child *os.Process) {
	l.attend(b, func(ctx context.Context) {
		defer close(b.unwatched)
		defer b.leave()
		if err := b.wait(ctx); err != nil || ctx.Err() != nil {
			return // this process stops; the box goes on
		}
		if child != nil {
			_, _ = child.Wait()
		} else { // of an earlier Local of this process, if of this process at all
			_, _ = unix.Wait4(b.as().record.Process.PID, nil, unix.WNOHANG, nil)
		}
		close(b.ended)
		if !b.as().record.Paused {
			close(b.told)
		}
	})
}

// attend runs work for a box until the box ends or this process lets go of it.
func (l *Local) attend(b *box, work func(ctx context.Context)) {
	l.running.Add(1)
	b.work.Go(func() {
		defer l.running.Done()
		work(b.attended)
	})
}
