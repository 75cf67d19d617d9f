//go:build linux

package local

import (
	"context"
	"errors"
	"io/fs"
	"regexp"
	"time"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters"
)

// boxIDs is the form of a box id: it becomes a folder's name and a host name.
var boxIDs = regexp.MustCompile(`^[a-z0-9]{1,40}$`)

// cleanTime bounds the removal of what a failed create left.
const cleanTime = 30 * time.Second

// spare is what the data folder's disk keeps free: the boxes' disks are sparse, and one that cannot be written
// any more breaks all of them.
const spare = 256 << 20

// Create makes a box and returns when envd answers in it.
func (l *Local) Create(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	return l.create(ctx, spec, false)
}

func (l *Local) create(ctx context.Context, spec adapters.Spec, stocked bool) (adapters.Box, error) {
	if !boxIDs.MatchString(spec.BoxID) {
		return adapters.Box{}, adapters.Errorf(adapters.KindInvalid, "a box id has 1 to 40 characters of a-z and 0-9")
	}
	if err := l.check(spec); err != nil {
		return adapters.Box{}, err
	}
	if err := l.roomy(); err != nil {
		return adapters.Box{}, err
	}
	root, from, err := l.sourceOf(ctx, spec)
	if err != nil {
		return adapters.Box{}, err
	}
	if err := l.boxes.reserve(spec.BoxID, spec.Resources, l.config.Machine); err != nil {
		return adapters.Box{}, err
	}
	m := newMaker(l, spec, root)
	m.snapshot = from
	if m.record.Stocked = stocked; stocked {
		m.record.SandboxID = ""
	}
	b, err := l.make(ctx, m)
	if err != nil {
		return adapters.Box{}, err
	}
	l.boxes.add(b)
	return b.describe(), nil
}

// sourceOf finds what a box is made of: the template's root file system, or a snapshot, which knows its own.
func (l *Local) sourceOf(ctx context.Context, spec adapters.Spec) (Root, *copied, error) {
	if spec.Template.Snapshot == "" {
		root, err := l.rootOf(ctx, spec.Template.Name)
		return root, nil, err
	}
	from, err := l.snapshot(spec.Template.Snapshot)
	if err != nil {
		return Root{}, nil, err
	}
	if spec.Resources.DiskMB < from.DiskMB {
		return Root{}, nil, adapters.Errorf(adapters.KindInvalid, "the snapshot was made of a sandbox with %d MiB of disk: ask for no less", from.DiskMB)
	}
	return Root{Name: from.Template, Layers: from.Layers}, from, nil
}

// roomy refuses creates, and claims of what was made ahead, on a disk that is almost full.
func (l *Local) roomy() error {
	var fs unix.Statfs_t
	if err := unix.Statfs(l.dir, &fs); err != nil || int64(fs.Bavail)*fs.Frsize >= max(spare, int64(l.config.KeepFreeMB)<<20) {
		return nil
	}
	return adapters.Errorf(adapters.KindCapacity, "the data folder is full: %d MiB are free on its disk, and %d stay free (limits.keep_free_mb): kill sandboxes, or make room",
		int64(fs.Bavail)*fs.Frsize>>20, max(spare>>20, l.config.KeepFreeMB))
}

// check refuses what no box here can have.
func (l *Local) check(spec adapters.Spec) error {
	r, most := spec.Resources, l.description.Max
	switch {
	case spec.GPU.Kind != "":
		return adapters.Errorf(adapters.KindUnsupported, "this machine gives sandboxes no GPU")
	case r.CPU < 1 || r.MemoryMB < 1 || r.DiskMB < 1:
		return adapters.Errorf(adapters.KindInvalid, "cpu, memory and disk of a sandbox are at least 1")
	case r.CPU > most.CPU:
		return adapters.Errorf(adapters.KindUnsupported, "%d CPUs are more than this machine gives one sandbox: ask for at most %d", r.CPU, most.CPU)
	case r.MemoryMB > most.MemoryMB:
		return adapters.Errorf(adapters.KindUnsupported, "%d MiB of memory are more than this machine gives one sandbox: ask for at most %d", r.MemoryMB, most.MemoryMB)
	case r.DiskMB > most.DiskMB:
		return adapters.Errorf(adapters.KindUnsupported, "%d MiB of disk are more than this machine gives one sandbox: ask for at most %d", r.DiskMB, most.DiskMB)
	}
	return l.checkNetwork(spec.Network)
}

// make runs the steps. Whatever fails, nothing of the box is left but with KindUnknownOutcome; then a Destroy
// finds it.
func (l *Local) make(ctx context.Context, m *maker) (*box, error) {
	b, err := m.run(ctx)
	if err == nil {
		return b, nil
	}
	if errors.Is(err, fs.ErrExist) && !m.owned {
		l.boxes.remove(m.record.BoxID)
		return nil, adapters.Errorf(adapters.KindExists, "a sandbox with the id %s is there already", m.record.BoxID)
	}
	left := m.remains(b)
	if problem := l.clear(context.WithoutCancel(ctx), left); problem != nil {
		l.boxes.leave(left)
		l.log.Error("something of a failed create is left", "box", m.record.BoxID, "error", errors.Join(err, problem))
		return nil, somethingLeft(err)
	}
	l.boxes.remove(m.record.BoxID)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	l.log.Error("create", "box", m.record.BoxID, "error", err)
	return nil, adapters.Wrap(adapters.KindUnavailable, err,
		"the sandbox could not be started on this machine: `isthmus doctor` says what is missing")
}
