//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local/cgroup"
	"github.com/isthmus/isthmus/adapters/local/disk"
	"github.com/isthmus/isthmus/adapters/local/inside"
	"github.com/isthmus/isthmus/adapters/local/inside/handover"
	"github.com/isthmus/isthmus/adapters/local/proc"
)

// The box's writable layer in its folder: a disk image, or a folder.
const (
	imageName  = "disk"
	folderName = "writable"
)

// The control group bounds the processes of all users of a box, each of whom has a limit of its own, and the
// threads of envd: a runtime that cannot make a thread dies, and with PID 1 the box.
const (
	userShare  = 2 // root and user
	ownThreads = 256
)

// maker makes one box, step by step; record always says what is there to be removed.
type maker struct {
	l      *Local
	spec   adapters.Spec
	root   Root
	record record
	path   string
	owned  bool // the folder is ours

	service, handover *os.File
	// snapshot is what the writable layer begins with; nil: nothing.
	snapshot *copied
	// writable holds the box's upper layer: a detached mount, or a folder as an ordinary user.
	writable int
}

func newMaker(l *Local, spec adapters.Spec, root Root) *maker {
	return &maker{
		l: l, spec: spec, root: root, path: l.boxPath(spec.BoxID), writable: -1,
		record: record{
			BoxID: spec.BoxID, Attempt: spec.Attempt, Deployment: spec.Deployment, TeamID: spec.TeamID,
			SandboxID: spec.Envd.SandboxID, CreatedAt: time.Now().UTC(), Resources: spec.Resources, Template: spec.Template.Name,
			Layers:  append([]string{}, root.Layers...),
			Version: spec.Template.Version, Snapshot: spec.Template.Snapshot,
			Internet: l.reachOf(spec.Network).any(), Reach: l.reachOf(spec.Network),
		},
	}
}

// run does all steps. A box that is returned beside an error has a running PID 1.
func (m *maker) run(ctx context.Context) (*box, error) {
	defer m.release()
	for _, step := range []func(context.Context) error{m.folders, m.storage, m.sockets, m.limits} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return m.boot(ctx)
}

// boot starts PID 1 on what was made and returns when envd answers. As with run, a box beside an error has a running
// PID 1.
func (m *maker) boot(ctx context.Context) (*box, error) {
	s, err := m.l.tier.launch(m.l.envd, m.spec.Resources.CPU, m.l.tier.namespaces(), m.record.FirstID, m.record.Cgroup)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.control.Close() }()
	b, err := m.recorded(s)
	if err != nil {
		_ = s.process.Kill()
		_, _ = s.process.Wait()
		return nil, err
	}
	m.l.watch(b, s.process)
	traffic, err := m.setUp(ctx, s)
	if err != nil {
		return b, err
	}
	e, err := m.l.openTraffic(m.record, traffic)
	if err != nil {
		return b, err
	}
	b.traffic = e
	m.l.carry(b, e)
	if m.record.Stocked {
		return b, nil // its envd is configured at the claim
	}
	return b, b.health(ctx)
}

// release closes what only the making needs.
func (m *maker) release() {
	if m.writable >= 0 {
		_ = unix.Close(m.writable)
	}
	for _, f := range []*os.File{m.service, m.handover} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// folders makes the box's folder, which is the mark that the id is in use, and leases its ids.
func (m *maker) folders(context.Context) error {
	if err := os.Mkdir(m.path, 0o755); err != nil {
		return err
	}
	m.owned = true
	if m.l.ids != nil {
		first, err := m.l.ids.Take(m.record.BoxID)
		if err != nil {
			return err
		}
		m.record.FirstID = first
	}
	return m.record.save(m.path)
}

// storage makes what holds the box's writable layer: a disk of its own, or a folder where there is none.
func (m *maker) storage(ctx context.Context) error {
	if m.l.tier.bare {
		return m.habitat()
	}
	if err := m.format(ctx); err != nil {
		return err
	}
	if err := m.open(ctx); err != nil || m.snapshot != nil {
		return err
	}
	for _, name := range []string{inside.DirUpper, inside.DirWork} {
		if err := os.Mkdir(fmt.Sprintf("/proc/self/fd/%d/%s", m.writable, name), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// format makes an empty disk or folder, or a copy of the snapshot's disk.
func (m *maker) format(ctx context.Context) error {
	image, bytes := filepath.Join(m.path, imageName), int64(m.record.Resources.DiskMB)<<20
	switch {
	case m.snapshot != nil:
		return m.snapshot.unpack(ctx, image, bytes)
	case m.l.disks:
		return disk.Images{Dir: filepath.Join(m.l.dir, dirDisks)}.Make(ctx, image, bytes)
	}
	return os.Mkdir(filepath.Join(m.path, folderName), 0o755)
}

// open opens what the box writes to. The ids on it begin at 0, as on every layer, so that it can be another box's.
func (m *maker) open(context.Context) error {
	if m.l.disks {
		d, err := disk.Attach(filepath.Join(m.path, imageName))
		if err != nil {
			return err
		}
		m.record.Device, m.writable = d.Device, d.Mount
		return nil
	}
	folder := filepath.Join(m.path, folderName)
	var err error
	if m.l.tier.root {
		m.writable, err = unix.OpenTree(unix.AT_FDCWD, folder, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	} else {
		m.writable, err = unix.Open(folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	}
	return err
}

// sockets binds the two sockets; PID 1 listens on them.
func (m *maker) sockets(context.Context) error {
	folder, err := os.Open(m.path)
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	if m.service, err = bound(folder, socketService); err != nil {
		return err
	}
	m.handover, err = bound(folder, socketHandover)
	return err
}

func bound(folder *os.File, name string) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: socketPath(folder.Fd(), name)}); err != nil {
		return nil, errors.Join(fmt.Errorf("bind socket %s: %w", name, err), f.Close())
	}
	return f, nil
}

// limits makes the control group.
func (m *maker) limits(context.Context) error {
	if m.l.cgroups == nil {
		return nil
	}
	m.record.Cgroup = m.l.cgroups.Plan(m.record.BoxID)
	if err := m.record.save(m.path); err != nil {
		return err
	}
	return m.record.Cgroup.Make(cgroup.Limits{
		MemoryBytes: int64(m.record.Resources.MemoryMB) << 20, CPUs: m.record.Resources.CPU,
		Processes: userShare*m.l.config.Processes + ownThreads,
	})
}

// recorded writes down which process PID 1 is before it is told to go on: until then it ends when this
// process does. It takes the pidfd over, also when it fails.
func (m *maker) recorded(s *started) (*box, error) {
	var err error
	if m.record.Process, err = proc.Identify(s.process.Pid); err == nil {
		err = m.record.save(m.path)
	}
	if err != nil {
		_ = unix.Close(s.pidfd)
		return nil, err
	}
	return m.l.newBox(m.record, m.path, s.pidfd, m.spec.Envd.Transport, m.spec.Envd.Control)
}

// setUp gives PID 1 its limits, ids and everything it builds the box from, and waits until it listens.
func (m *maker) setUp(ctx context.Context, s *started) ([]int, error) {
	// Out of memory, the box's own processes go first. Lowering needs root; without it envd's own
	// preference for its children remains.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", s.process.Pid), []byte("-900"), 0)
	if err := m.l.tier.writeMaps(ctx, s.process.Pid); err != nil {
		return nil, err
	}
	if m.l.tier.root {
		if err := shift(m.writable, s.process.Pid); err != nil {
			return nil, err
		}
	}
	layers, err := m.layers(s.process.Pid)
	defer handover.CloseAll(layers)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = s.control.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := m.send(s.control, layers); err != nil {
		return nil, fmt.Errorf("set-up message: %w", err)
	}
	var ready inside.Ready
	traffic, err := handover.Receive(s.control, &ready)
	if err != nil {
		return nil, fmt.Errorf("PID 1 ended during the set-up: %w", err)
	}
	if ready.Error != "" {
		handover.CloseAll(traffic)
		return nil, errors.New(ready.Error)
	}
	return traffic, nil
}

func (m *maker) send(control *net.UnixConn, layers []int) error {
	fds := []int{int(m.service.Fd()), int(m.handover.Fd())}
	if m.writable >= 0 {
		fds = append(fds, m.writable)
	}
	s := inside.Setup{
		Envd: m.spec.Envd, Hostname: m.record.BoxID, Internet: m.record.Internet, IPv6: m.l.ipv6,
		SharedMemory: int64(m.record.Resources.MemoryMB) << 19, // half of the memory
		Layers:       len(layers), Mounts: m.l.tier.root, SwitchIDs: m.l.tier.shared(),
		Processes: uint64(m.l.config.Processes), Stocked: m.record.Stocked,
		NoLoopback: m.l.config.NoLoopback,
	}
	if m.l.cgroups == nil {
		s.Data = uint64(m.record.Resources.MemoryMB) << 20
	}
	if m.l.tier.bare {
		s.Bare = m.path
	}
	return handover.Send(control, s, append(fds, layers...)...)
}

// layers opens the root file system: as mounts in the box's ids, or as the folders themselves.
func (m *maker) layers(pid int) ([]int, error) {
	if m.l.tier.bare {
		return nil, nil
	}
	var fds []int
	for _, layer := range append(slices.Clone(m.root.Layers), m.l.tools) {
		var fd int
		var err error
		if m.l.tier.root {
			fd, err = mapped(layer, pid)
		} else {
			fd, err = unix.Open(layer, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		}
		if err != nil {
			return fds, err
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

// health asks envd whether it serves.
func (b *box) health(ctx context.Context) error {
	resp, err := b.call(ctx, http.MethodGet, "/health", nil)
	if err != nil {
		return fmt.Errorf("envd does not answer: %w", err)
	}
	return resp.Body.Close()
}
