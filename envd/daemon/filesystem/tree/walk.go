package tree

import (
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinks is the kernel's own limit on links in one path.
const maxLinks = 40

// walk does what openat2 with RESOLVE_NO_MAGICLINKS does where the kernel has none: it goes from folder to
// folder by descriptors, so that nothing that was checked can be exchanged.
func walk(dir int, path string, flags int, mode uint32) (int, error) {
	if path == "" {
		return -1, unix.ENOENT
	}
	at, err := start(dir, path)
	if err != nil {
		return -1, err
	}
	defer func() { unix.Close(at) }()
	rest := split(path)
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		next, err := unix.Openat(at, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err == unix.ENOENT && len(rest) == 0 && flags&unix.O_CREAT != 0 {
			return unix.Openat(at, name, flags|unix.O_NOFOLLOW, mode)
		}
		if err != nil {
			return -1, err
		}
		target, err := follow(next, len(rest) == 0 && flags&(unix.O_NOFOLLOW|unix.O_EXCL) != 0)
		if err != nil {
			unix.Close(next)
			return -1, err
		}
		if target == "" {
			unix.Close(at)
			at = next
			continue
		}
		unix.Close(next)
		if links++; links > maxLinks {
			return -1, unix.ELOOP
		}
		if target[0] == '/' {
			root, err := start(unix.AT_FDCWD, target)
			if err != nil {
				return -1, err
			}
			unix.Close(at)
			at = root
		}
		rest = append(split(target), rest...)
	}
	return reopen(at, flags)
}

// start opens where a path begins: the root, or the folder that it is relative to.
func start(dir int, path string) (int, error) {
	if path[0] == '/' {
		return unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	}
	return unix.Openat(dir, ".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// split cuts a path into names. A slash at the end demands a folder, which "." after it says as well.
func split(path string) []string {
	var names []string
	for name := range strings.SplitSeq(path, "/") {
		if name != "" {
			names = append(names, name)
		}
	}
	if strings.HasSuffix(path, "/") {
		names = append(names, ".")
	}
	return names
}

// follow returns the text of a link that is to be followed, and "" for anything else. Magic links are those of
// a /proc whose text is a path of its own or names something that has none.
func follow(fd int, stay bool) (string, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "", err
	}
	if stay || st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return "", nil
	}
	buffer := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", buffer)
	if err != nil {
		return "", err
	}
	target := string(buffer[:n])
	if target == "" {
		return "", unix.ENOENT
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return "", err
	}
	if fs.Type == unix.PROC_SUPER_MAGIC && (target[0] == '/' || strings.Contains(target, ":[")) {
		return "", unix.ELOOP
	}
	return target, nil
}

// reopen turns a descriptor of O_PATH into one of the wanted kind.
func reopen(fd, flags int) (int, error) {
	if flags&unix.O_PATH == 0 {
		if flags&unix.O_EXCL != 0 {
			return -1, unix.EEXIST
		}
		return unix.Open(link(fd), flags&^(unix.O_CREAT|unix.O_NOFOLLOW), 0)
	}
	if flags&unix.O_DIRECTORY != 0 {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return -1, err
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			return -1, unix.ENOTDIR
		}
	}
	n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	return n, err
}
