//go:build linux

package local

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local/cgroup"
	"github.com/isthmus/isthmus/adapters/local/inside/proctree"
)

var _ adapters.Meter = (*Local)(nil)

// restedAsLong is how long the last sample of a box is given again when the box has used no processor since.
const restedAsLong = time.Minute

// Measure takes one sample from the box's control group and file system, without asking anything in the box. Of a box
// that has done nothing since the last time it tells what was seen then: most boxes mostly do nothing.
func (l *Local) Measure(_ context.Context, boxID string) (adapters.Sample, error) {
	b, err := l.boxes.get(boxID)
	if err != nil {
		return adapters.Sample{}, err
	}
	r := b.as().record
	if last := b.sample.Load(); last != nil && rested(r, *last) && b.alive() {
		again := *last
		again.At = time.Now().UTC()
		return again, nil
	}
	s := adapters.Sample{At: time.Now().UTC(), CPUCount: r.Resources.CPU, MemTotal: int64(r.Resources.MemoryMB) << 20}
	used, err := usage(r)
	if err != nil {
		return s, b.unmeasured(err)
	}
	s.CPUTime, s.MemUsed, s.MemCache = used.CPU, used.Memory, used.Cache
	var fs unix.Statfs_t
	if err := unix.Statfs(l.diskPath(b), &fs); err != nil {
		return s, b.unmeasured(err)
	}
	s.DiskTotal = int64(fs.Blocks) * fs.Frsize
	s.DiskUsed = int64(fs.Blocks-fs.Bfree) * fs.Frsize
	if !b.alive() {
		return s, gone(boxID) // the figures may be those of another process by now
	}
	b.sample.Store(&s)
	return s, nil
}

// rested reports whether a box has done nothing since a sample that is not old.
func rested(r record, last adapters.Sample) bool {
	if r.Cgroup == nil || time.Since(last.At) > restedAsLong {
		return false
	}
	used, err := r.Cgroup.CPU()
	return err == nil && used == last.CPUTime && used > 0
}

func usage(r record) (cgroup.Usage, error) {
	if r.Cgroup != nil {
		return r.Cgroup.Usage()
	}
	// PID 1 is the ancestor of all. Pages that processes share are counted for each of them.
	tree, err := proctree.Tree(r.Process.PID)
	var u cgroup.Usage
	for _, s := range tree {
		u.CPU += s.CPU
		u.Memory += s.Resident
	}
	return u, err
}

// diskPath is where the figures of the box's writable layer can be had: at the root of PID 1, which passes
// the question on, or in the box's folder, whose file system all boxes share, where the former is closed
// to us.
func (l *Local) diskPath(b *box) string {
	if l.disks {
		return fmt.Sprintf("/proc/%d/root", b.as().record.Process.PID)
	}
	return b.as().path
}

// unmeasured says what a failed measurement means: mostly that the box has just ended.
func (b *box) unmeasured(err error) error {
	if !b.alive() {
		return gone(b.as().record.BoxID)
	}
	return adapters.Wrap(adapters.KindUnavailable, err, "the sandbox cannot be measured at the moment: try again")
}
