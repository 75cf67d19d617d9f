package spawn

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Look finds the executable of a name as execvp does for a process with this PATH in this folder: a name with
// a slash stands for itself. The error is ENOENT when there is none, EACCES when there are only files that
// cannot be executed. That the user may execute it is for the kernel to decide.
func Look(name, path, dir string) (string, error) {
	if name == "" {
		return "", syscall.ENOENT
	}
	if strings.Contains(name, "/") {
		return name, nil
	}
	found := error(syscall.ENOENT)
	for _, folder := range filepath.SplitList(path) {
		candidate := filepath.Join(folder, name)
		if !filepath.IsAbs(candidate) {
			candidate = filepath.Join(dir, candidate)
		}
		switch info, err := os.Stat(candidate); {
		case err != nil || info.IsDir():
		case info.Mode()&0o111 == 0:
			found = syscall.EACCES
		default:
			return candidate, nil
		}
	}
	return "", found
}

// Searchable reports whether a user may enter a folder, judged by the mode bits of it and of every folder
// above. It tells apart the two reasons for EACCES from Start.
func Searchable(dir string, c *syscall.Credential) bool {
	for {
		info, err := os.Stat(dir)
		if err != nil || !info.IsDir() || !searchable(info, c) {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
		dir = filepath.Dir(dir)
	}
}

func searchable(info fs.FileInfo, c *syscall.Credential) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || c == nil || c.Uid == 0 {
		return true
	}
	switch {
	case owner.Uid == c.Uid:
		return info.Mode()&0o100 != 0
	case owner.Gid == c.Gid || slices.Contains(c.Groups, owner.Gid):
		return info.Mode()&0o010 != 0
	}
	return info.Mode()&0o001 != 0
}
