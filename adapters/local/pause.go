//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local/disk"
	"github.com/isthmus/isthmus/adapters/local/proc"
)

var _ adapters.Pauser = (*Local)(nil)

// Pause ends all processes of the box and keeps its file system. That the box is to be kept is written down first:
// whenever this process dies, the next one finds a box that runs or finishes the pause.
func (l *Local) Pause(ctx context.Context, boxID string, level adapters.Level) error {
	if err := l.keeps(level); err != nil {
		return err
	}
	done, err := l.turns.take(ctx, boxID)
	if err != nil {
		return err
	}
	defer done()
	if l.boxes.paused(boxID) != nil {
		return nil
	}
	b, err := l.boxes.get(boxID)
	if err != nil {
		return err
	}
	next := *b.as()
	switch {
	case next.record.Stocked, !b.alive() && !next.record.Paused:
		return gone(boxID)
	case !next.record.Paused:
		next.record.Paused = true
		if err := next.record.save(next.path); err != nil {
			return adapters.Wrap(adapters.KindUnavailable, err, "the sandbox could not be paused, and runs on: is the disk full?")
		}
		b.role.Store(&next)
	}
	if err := l.end(ctx, b); err != nil {
		return unknownPause(err)
	}
	r, err := l.settle(ctx, next.record, next.path)
	l.boxes.leave(r.resting(next.path))
	if err != nil {
		return unknownPause(err)
	}
	return nil
}

// keeps refuses what a pause here does not keep.
func (l *Local) keeps(level adapters.Level) error {
	switch {
	case l.tier.bare:
		return adapters.Errorf(adapters.KindUnsupported, "sandboxes without isolation are processes of this machine and cannot be paused")
	case level != adapters.LevelFilesystem:
		return adapters.Errorf(adapters.KindUnsupported, "this machine pauses sandboxes by their file system: the level %s is not supported", level)
	}
	return nil
}

func unknownPause(cause error) error {
	return adapters.Wrap(adapters.KindUnknownOutcome, cause, "it is not known yet whether the sandbox is paused: look at it, and pause it again")
}

// resting is a paused box as the table holds it: what is on the disk, and nothing that runs.
func (r record) resting(path string) *remains {
	left := &remains{known: r.describe(r.BoxID), record: r, path: path}
	left.known.Alive, left.known.Paused = true, true
	return left
}

// settle ends what may still run of a box that is to be kept, and gives everything back but its folder and its ids. A
// second time finds nothing to do. The record says what is still there.
func (l *Local) settle(ctx context.Context, r record, path string) (record, error) {
	if err := kill(ctx, r); err != nil {
		return r, err
	}
	image := filepath.Join(path, imageName)
	problems := []error{r.Cgroup.Remove(ctx)}
	if r.Device != "" {
		problems = append(problems, disk.WaitDetached(ctx, r.Device, image), syncFile(image))
	}
	for _, socket := range []string{socketService, socketHandover} {
		if err := os.Remove(filepath.Join(path, socket)); !errors.Is(err, fs.ErrNotExist) {
			problems = append(problems, err)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return r, fmt.Errorf("give back what a paused box held: %w", err)
	}
	next := r
	next.Process, next.Cgroup, next.Device = proc.ID{}, nil, ""
	if err := next.save(path); err != nil {
		return r, err
	}
	return next, nil
}

// syncFile brings a file to the disk: a paused box outlives the machine's next start.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
