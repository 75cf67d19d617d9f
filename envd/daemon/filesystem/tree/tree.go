// Package tree opens, makes, describes, moves and removes entries of the sandbox's file tree.
//
// The daemon does this as root and as itself, so every path is a request to use the daemon's own rights. Files
// of the sandbox are open to every client of the sandbox anyway; what must stay shut is the daemon's own
// process: /proc/self and /proc/1 would give away its secrets, its memory and its descriptors. Therefore a
// path is resolved once, by the kernel, without following the magic links of /proc, and what was opened is
// looked at before it is used; a check of the path's text could be overtaken by a changed link.
package tree

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// ErrRefused says that a path leads into the daemon's own process.
var ErrRefused = errors.New("refused: the path leads into the sandbox daemon's own process or through a link" +
	" of /proc; read it with a command instead")

// Names gives the names of ids.
type Names interface {
	// UserName names a user id; an id without a name is its number as text.
	UserName(uid uint32) string
	// GroupName does the same for a group id.
	GroupName(gid uint32) string
}

// Owner is who gets what is made.
type Owner struct {
	UID uint32
	GID uint32
}

// Tree works on the file tree that this process sees. It is safe for use by several goroutines.
type Tree struct {
	names Names
	// noOpenat2 is set once the kernel was seen to have no openat2 (gVisor, old seccomp profiles).
	noOpenat2 atomic.Bool
}

// New returns a tree that names owners with names.
func New(names Names) *Tree { return &Tree{names: names} }

// Open opens a path as open(2) does, following links but not those of /proc, and never waits for the other
// side of a FIFO. The caller closes the descriptor. The error is a *fs.PathError that holds an errno or
// ErrRefused.
func (t *Tree) Open(path string, flags int, mode uint32) (fd int, err error) {
	fd, err = t.openat(unix.AT_FDCWD, path, flags|unix.O_NONBLOCK, mode)
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// openat is Open relative to a folder, with a bare error.
func (t *Tree) openat(dir int, path string, flags int, mode uint32) (int, error) {
	fd, err := t.resolve(dir, path, flags, mode)
	if err == unix.ELOOP && throughMagicLink(dir, path) {
		return -1, ErrRefused
	}
	if err != nil {
		return -1, err
	}
	if err := refuseOwn(fd); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// resolve opens without following magic links, which fail with ELOOP.
func (t *Tree) resolve(dir int, path string, flags int, mode uint32) (int, error) {
	flags |= unix.O_CLOEXEC
	if t.noOpenat2.Load() {
		return walk(dir, path, flags, mode)
	}
	how := unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_NO_MAGICLINKS}
	if flags&unix.O_CREAT != 0 {
		how.Mode = uint64(mode)
	}
	if flags&unix.O_PATH != 0 {
		how.Flags &= unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	}
	for {
		fd, err := unix.Openat2(dir, path, &how)
		switch err {
		case nil:
			return fd, nil
		case unix.EINTR:
			continue
		case unix.ENOSYS, unix.EPERM:
			// EPERM is also an honest answer (an immutable file), but then the walk gives it again.
			if err == unix.ENOSYS {
				t.noOpenat2.Store(true)
			}
			return walk(dir, path, flags, mode)
		}
		return -1, err
	}
}

// throughMagicLink tells a link of /proc from a loop of ordinary links, after ELOOP.
func throughMagicLink(dir int, path string) bool {
	var st unix.Stat_t
	return unix.Fstatat(dir, path, &st, 0) != unix.ELOOP
}

// link is the path by which the kernel reaches an open descriptor. Calls that take no descriptor, or not one
// of O_PATH, are given it.
func link(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// resolved returns the absolute path of an open descriptor.
func resolved(fd int) (string, error) { return os.Readlink(link(fd)) }

// Resolve follows every link of a path and returns where it leads. The error is as Open's.
func (t *Tree) Resolve(path string) (string, error) {
	fd, err := t.openat(unix.AT_FDCWD, path, unix.O_PATH, 0)
	if err != nil {
		return "", &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	defer unix.Close(fd)
	return resolved(fd)
}
