package files

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// full words the answer to an upload that did not fit, or returns nil for any other error. The length is that
// of the request's body; below 0 it is not known.
func full(err error, path string, length int64) *fault {
	if !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) {
		return nil
	}
	if outOfInodes(path) {
		return refuse(http.StatusInsufficientStorage, "not enough inodes available: %s", err)
	}
	message := "not enough disk space available"
	if length >= 0 {
		message = fmt.Sprintf("attempted to write %d bytes: %s", length, message)
	}
	return refuse(http.StatusInsufficientStorage, "%s", message)
}

// outOfInodes reports whether the file system that a path is, or was to be, on has no inode left. Some file
// systems count none at all.
func outOfInodes(path string) bool {
	var st unix.Statfs_t
	for {
		err := unix.Statfs(path, &st)
		if err == nil {
			return st.Files > 0 && st.Ffree == 0
		}
		if path == filepath.Dir(path) {
			return false
		}
		path = filepath.Dir(path)
	}
}
