//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local/cgroup"
	"github.com/isthmus/isthmus/adapters/local/disk"
)

var _ adapters.Snapshotter = (*Local)(nil)

// freezeTime bounds the wait for a box's processes to stop.
const freezeTime = 10 * time.Second

// Snapshot copies the disk of a box, whose processes stand still meanwhile: for as long as copying the written part
// takes. A paused box can be copied too.
func (l *Local) Snapshot(ctx context.Context, spec adapters.Spec, name string) (adapters.Snapshot, error) {
	switch {
	case !boxIDs.MatchString(name):
		return adapters.Snapshot{}, adapters.Errorf(adapters.KindInvalid, "the name of a snapshot has 1 to 40 characters of a-z and 0-9")
	case !l.copies():
		return adapters.Snapshot{}, adapters.Errorf(adapters.KindUnsupported,
			"sandboxes of this machine cannot be copied: that takes root, loop devices and control groups that can be frozen")
	}
	done, err := l.turns.take(ctx, spec.BoxID)
	if err != nil {
		return adapters.Snapshot{}, err
	}
	defer done()
	if there, err := l.snapshot(name); err == nil {
		return there.describe(), nil
	}
	if err := l.roomy(); err != nil {
		return adapters.Snapshot{}, err
	}
	r, path, thaw, err := l.still(ctx, spec.BoxID)
	if err != nil {
		return adapters.Snapshot{}, err
	}
	defer thaw()
	c := copied{
		Name: name, Deployment: r.Deployment, CreatedAt: time.Now().UTC(), Template: r.Template, Version: r.Version,
		Layers: r.Layers, DiskMB: r.Resources.DiskMB,
	}
	if err := c.make(ctx, filepath.Join(l.dir, dirSnapshots), filepath.Join(path, imageName)); err != nil {
		if errors.Is(err, unix.ENOSPC) {
			return adapters.Snapshot{}, adapters.Wrap(adapters.KindCapacity, err, "the data folder has no room for the snapshot: remove others, or make room")
		}
		return adapters.Snapshot{}, asAdapterError(ctx, err, "the sandbox could not be copied: it runs on, try again")
	}
	return c.describe(), nil
}

// copies reports whether boxes can be copied here.
func (l *Local) copies() bool { return l.disks && l.cgroups.Freezes() }

// still returns a box whose disk does not change until thaw is called.
func (l *Local) still(ctx context.Context, boxID string) (r record, path string, thaw func(), err error) {
	if left := l.boxes.paused(boxID); left != nil {
		settled, err := l.settle(ctx, left.record, left.path)
		if err != nil {
			return record{}, "", nil, asAdapterError(ctx, err, "the paused sandbox could not be read: try again")
		}
		return settled, left.path, func() {}, nil
	}
	b, err := l.boxes.get(boxID)
	if err == nil && (!b.alive() || b.as().record.Stocked) {
		err = gone(boxID)
	}
	if err != nil {
		return record{}, "", nil, err
	}
	as := b.as()
	group := as.record.Cgroup
	if err = freeze(ctx, group); err == nil {
		err = flush(as.record.Process.PID)
	}
	if !b.alive() {
		err = gone(boxID)
	}
	if err != nil {
		group.Thaw()
		return record{}, "", nil, asAdapterError(ctx, err, "the sandbox could not be made to stand still: try again")
	}
	return as.record, as.path, group.Thaw, nil
}

func freeze(ctx context.Context, group *cgroup.Group) error {
	ctx, cancel := context.WithTimeout(ctx, freezeTime)
	defer cancel()
	return group.Freeze(ctx)
}

// flush writes what the box's processes have written into its image. The root of PID 1 passes it on to the disk.
func flush(pid int) error {
	root, err := os.Open(fmt.Sprintf("/proc/%d/root", pid))
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(root.Fd())), root.Close())
}

// snapshot finds a copy by its name.
func (l *Local) snapshot(name string) (*copied, error) {
	if boxIDs.MatchString(name) {
		c, err := loadCopied(filepath.Join(l.dir, dirSnapshots, name))
		switch {
		case err == nil:
			return c, nil
		case !errors.Is(err, fs.ErrNotExist):
			return nil, adapters.Wrap(adapters.KindUnavailable, err, "the snapshot cannot be read: see Isthmus's log")
		}
	}
	return nil, adapters.Errorf(adapters.KindNotFound, "there is no snapshot %s on this machine", name)
}

// Snapshots returns every copy of the deployment.
func (l *Local) Snapshots(_ context.Context, deployment string) ([]adapters.Snapshot, error) {
	all, err := snapshots(filepath.Join(l.dir, dirSnapshots))
	if err != nil {
		return nil, adapters.Wrap(adapters.KindUnavailable, err, "the snapshots of this machine cannot be listed: see Isthmus's log")
	}
	var list []adapters.Snapshot
	for _, one := range all {
		if one.Deployment == deployment {
			list = append(list, one.describe())
		}
	}
	return list, nil
}

// Forget removes a copy. Boxes that were made of it have copies of their own.
func (l *Local) Forget(_ context.Context, s adapters.Snapshot) error {
	if !boxIDs.MatchString(s.Ref) {
		return nil
	}
	folder := filepath.Join(l.dir, dirSnapshots)
	going, err := os.MkdirTemp(folder, newPrefix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.Rename(filepath.Join(folder, s.Ref), filepath.Join(going, "gone"))
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err = errors.Join(err, os.RemoveAll(going)); err != nil {
		return adapters.Wrap(adapters.KindUnavailable, err, "the snapshot could not be removed: try again")
	}
	return nil
}

// sweep removes copies that an earlier facade did not finish.
func (l *Local) sweep() error {
	left, err := filepath.Glob(filepath.Join(l.dir, dirSnapshots, newPrefix+"*"))
	for _, folder := range left {
		err = errors.Join(err, os.RemoveAll(folder))
	}
	return err
}

// unpack writes the copy's disk as that of a new box, made larger when that one has more.
func (c *copied) unpack(ctx context.Context, image string, bytes int64) error {
	if err := disk.Copy(ctx, image, filepath.Join(c.path, imageName)); err != nil {
		return err
	}
	if bytes <= int64(c.DiskMB)<<20 {
		return nil
	}
	return disk.Grow(ctx, image, bytes)
}
