//go:build linux

package local

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/isthmus/isthmus/adapters/local/inside"
	"github.com/isthmus/isthmus/adapters/local/inside/handover"
)

// boxPath is the folder of a box.
func (l *Local) boxPath(id string) string { return filepath.Join(l.dir, dirBoxes, id) }

// adopt goes through the folders of an earlier facade: it takes over the boxes that run, and removes what is
// left of those that do not.
func (l *Local) adopt(ctx context.Context) error {
	entries, err := os.ReadDir(filepath.Join(l.dir, dirBoxes))
	if err != nil {
		return err
	}
	for _, e := range entries {
		left := &remains{path: l.boxPath(e.Name())}
		if err := l.adoptOne(ctx, e.Name(), left); err != nil {
			l.log.Error("box of an earlier run", "box", e.Name(), "error", err)
			l.boxes.leave(left)
		}
	}
	return l.releaseLeases()
}

// adoptOne takes one box over or removes it. With an error, left is what there is.
func (l *Local) adoptOne(ctx context.Context, id string, left *remains) error {
	r, err := loadRecord(left.path)
	left.record, left.known = r, r.describe(id)
	if err != nil {
		left.known.Alive = true
		return err
	}
	if r.BoxID != id { // the facade died before anything but folders was there, or in a claim: the box is nobody's
		return l.clear(ctx, left)
	}
	if r.Paused { // also when the facade died while it paused or resumed the box
		l.adoptPaused(ctx, r, left.path)
		return nil
	}
	pidfd, err := r.Process.Open()
	if errors.Is(err, fs.ErrNotExist) {
		return l.clear(ctx, left)
	}
	if err == nil {
		left.box, err = l.newBox(r, left.path, pidfd, "", "")
	}
	if err != nil {
		left.known.Alive = !r.Stocked
		return err
	}
	b := left.box
	r.Cgroup.Thaw() // the facade died while it copied the box
	l.watch(b, nil)
	if !b.settled(ctx) {
		return l.clear(ctx, left)
	}
	l.carry(b, nil)
	l.boxes.add(b)
	return nil
}

// adoptPaused takes a paused box over. What could not be given back yet is tried again when it is resumed.
func (l *Local) adoptPaused(ctx context.Context, r record, path string) {
	ctx, cancel := context.WithTimeout(ctx, cleanTime)
	defer cancel()
	settled, err := l.settle(ctx, r, path)
	if err != nil {
		l.log.Error("paused box of an earlier run", "box", r.BoxID, "error", err)
	}
	l.boxes.leave(settled.resting(path))
}

// settled waits until a box either serves or has ended. One whose facade died in the middle of its set-up does one of
// the two within moments; until then connections are taken that nobody will answer.
func (b *box) settled(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, cleanTime)
	defer cancel()
	for {
		if b.answers(ctx) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-b.ended:
			return false
		case <-time.After(time.Millisecond):
		}
	}
}

// answers reports whether PID 1 answers, whatever it says: one that was made ahead does so on its other socket.
func (b *box) answers(ctx context.Context) bool {
	var err error
	if b.as().record.Stocked {
		var traffic []int
		traffic, err = b.hand(ctx, inside.Claim{})
		handover.CloseAll(traffic)
	} else {
		err = b.health(ctx)
	}
	var broken net.Error
	return !errors.As(err, &broken) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && ctx.Err() == nil && b.alive()
}

// releaseLeases gives back ranges of ids of boxes of which nothing is left.
func (l *Local) releaseLeases() error {
	if l.ids == nil {
		return nil
	}
	held := map[string]bool{} // also by boxes whose folder has another name since a claim that failed
	for _, left := range l.boxes.remaining() {
		held[left.record.BoxID] = true
	}
	for _, owner := range l.ids.Owners() {
		if held[owner] {
			continue
		}
		if _, err := os.Lstat(l.boxPath(owner)); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := l.ids.Release(owner); err != nil {
			return err
		}
	}
	return nil
}
