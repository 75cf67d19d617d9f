//go:build linux

package local

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters/local/cgroup"
	"github.com/isthmus/isthmus/adapters/local/idrange"
	"github.com/isthmus/isthmus/adapters/local/inside/handover"
)

// started is a PID 1 that waits for its set-up.
type started struct {
	process *os.Process
	pidfd   int
	control *net.UnixConn
}

// namespaces are those of a box.
func (t tier) namespaces() uintptr {
	if t.bare {
		return 0
	}
	return boxed
}

// The namespace of control groups is made by PID 1 once it is in its groups: where it is then is the root of
// what the box sees.
const boxed = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUTS

// launch starts envd in new namespaces, as PID 1 of a box when they are those of one. Its standard streams are /dev/null, so that no log pipe of
// a facade that died can end it, and the executable is an open descriptor, so that its ids need no way
// through our folders.
func (t tier) launch(envd string, cpus int, namespaces uintptr, firstID uint32, group *cgroup.Group) (*started, error) {
	control, theirs, err := handover.Pair()
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirs.Close() }()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, errors.Join(err, control.Close())
	}
	defer func() { _ = null.Close() }()
	self, err := openPath(envd)
	if err != nil {
		return nil, errors.Join(err, control.Close())
	}
	defer func() { _ = self.Close() }()
	sys, err := t.attributes(namespaces, firstID, group)
	if err != nil {
		return nil, errors.Join(err, control.Close())
	}
	if sys.UseCgroupFD {
		defer func() { _ = unix.Close(sys.CgroupFD) }()
	}
	pidfd := -1
	sys.PidFD = &pidfd
	p, err := StartIn(group, firstID, func() (*os.Process, error) {
		return os.StartProcess("/proc/self/fd/4", []string{"envd", "box"}, &os.ProcAttr{
			Dir: "/", Env: []string{"GOMAXPROCS=" + strconv.Itoa(cpus)},
			Files: []*os.File{null, null, null, theirs, self}, Sys: sys,
		})
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start PID 1: %w", err), control.Close())
	}
	return &started{process: p, pidfd: pidfd, control: control}, nil
}

// attributes are the namespaces and ids of PID 1.
func (t tier) attributes(namespaces uintptr, firstID uint32, group *cgroup.Group) (*syscall.SysProcAttr, error) {
	sys := &syscall.SysProcAttr{Setsid: true, Cloneflags: namespaces}
	switch {
	case t.root:
		ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(firstID), Size: idrange.Size}}
		sys.UidMappings, sys.GidMappings, sys.GidMappingsEnableSetgroups = ids, ids, true
		sys.Credential = &syscall.Credential{}
	case t.shared():
		// The maps are written by newuidmap after the start; until then only ambient capabilities
		// survive the exec.
		for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
			sys.AmbientCaps = append(sys.AmbientCaps, c)
		}
	}
	dir, err := group.Open()
	if err != nil {
		return nil, err
	}
	if dir != nil {
		defer func() { _ = dir.Close() }()
		fd, err := unix.FcntlInt(dir.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		sys.UseCgroupFD, sys.CgroupFD = true, fd
	}
	return sys, nil
}

// openPath opens a file for execution only: it may be unreadable.
func openPath(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// mapped clones a layer as a mount whose ids are shifted into the box's range.
func mapped(layer string, pid int) (int, error) {
	tree, err := unix.OpenTree(unix.AT_FDCWD, layer, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("clone the layer: %w", err)
	}
	if err := shift(tree, pid); err != nil {
		_ = unix.Close(tree)
		return -1, err
	}
	return tree, nil
}

// shift makes the ids on a detached mount those of the box whose PID 1 is given: what lies there belongs to ids from 0.
func shift(tree, pid int) error {
	users, err := unix.Open(fmt.Sprintf("/proc/%d/ns/user", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("user namespace of PID 1: %w", err)
	}
	defer func() { _ = unix.Close(users) }()
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(users)}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, attr); err != nil {
		return fmt.Errorf("shift the ids of the layer (the data folder must not lie on an overlay): %w", err)
	}
	return nil
}
