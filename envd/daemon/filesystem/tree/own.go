package tree

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// refuseOwn returns ErrRefused when a descriptor is something of a /proc that belongs to this process or to
// PID 1. The kernel lets a process read all of its own /proc entries, whatever the user that asks may do.
func refuseOwn(fd int) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return err
	}
	if st.Type != unix.PROC_SUPER_MAGIC {
		return nil
	}
	path, err := resolved(fd)
	if err != nil {
		return ErrRefused
	}
	if ownsProcPath(path) {
		return ErrRefused
	}
	return nil
}

// ownsProcPath looks at a resolved path inside a /proc, wherever that is mounted: its first number is the
// process, and the number below "task" is a thread.
func ownsProcPath(path string) bool {
	process, task := false, false
	for part := range strings.SplitSeq(path, "/") {
		id, err := strconv.Atoi(part)
		if err == nil && (!process || task) && isOwn(id) {
			return true
		}
		process = process || err == nil
		task = process && part == "task"
	}
	return false
}

// isOwn reports whether an id is PID 1, this process, or one of its threads, which have folders of their own
// in /proc though these are not listed.
func isOwn(id int) bool {
	return id == 1 || id == os.Getpid() || unix.Access("/proc/self/task/"+strconv.Itoa(id), unix.F_OK) == nil
}
