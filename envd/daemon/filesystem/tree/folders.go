package tree

import (
	"errors"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// NotFolderError says that a path which should be a folder is something else.
type NotFolderError string

// Error names the path.
func (e NotFolderError) Error() string { return "path is a file: " + string(e) }

// folderMode is what new folders get, less the umask.
const folderMode = 0o755

// MakeFolders makes a folder and every missing parent of it, each owned by owner, and leaves alone what is
// there. It reports whether the folder itself is new. The error is a NotFolderError or a *fs.PathError.
func (t *Tree) MakeFolders(path string, owner Owner) (created bool, err error) {
	fd, created, err := t.folder(filepath.Clean(path), owner)
	if err != nil {
		return false, err
	}
	unix.Close(fd)
	return created, nil
}

// folder makes a folder and its parents, and returns it opened with O_PATH.
func (t *Tree) folder(path string, owner Owner) (fd int, created bool, err error) {
	fd, err = t.openat(unix.AT_FDCWD, path, unix.O_PATH|unix.O_DIRECTORY, 0)
	switch err {
	case nil:
		return fd, false, nil
	case unix.ENOTDIR:
		return -1, false, t.blocking(path)
	case unix.ENOENT:
	default:
		return -1, false, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if path == filepath.Dir(path) {
		return -1, false, &fs.PathError{Op: "mkdir", Path: path, Err: err}
	}
	parent, _, err := t.folder(filepath.Dir(path), owner)
	if err != nil {
		return -1, false, err
	}
	defer unix.Close(parent)
	fd, created, err = t.makeIn(parent, filepath.Base(path), owner)
	if err != nil {
		return -1, false, &fs.PathError{Op: "mkdir", Path: path, Err: err}
	}
	return fd, created, nil
}

// makeIn makes one folder. When somebody else made it in the meantime, that is as good, and it stays theirs.
func (t *Tree) makeIn(parent int, name string, owner Owner) (fd int, created bool, err error) {
	err = unix.Mkdirat(parent, name, folderMode)
	if err != nil && err != unix.EEXIST {
		return -1, false, err
	}
	created = err == nil
	flags := unix.O_PATH | unix.O_DIRECTORY
	if created {
		// What was just made is no link; one that took its place is not given away.
		flags |= unix.O_NOFOLLOW
	}
	fd, err = t.openat(parent, name, flags, 0)
	if err == nil && created {
		err = unix.Fchownat(fd, "", int(owner.UID), int(owner.GID), unix.AT_EMPTY_PATH)
		if err != nil {
			unix.Close(fd)
		}
	}
	return fd, created, err
}

// blocking finds which part of a path is in the way of a folder.
func (t *Tree) blocking(path string) error {
	for {
		fd, err := t.openat(unix.AT_FDCWD, path, unix.O_PATH, 0)
		if err == nil {
			unix.Close(fd)
			return NotFolderError(path)
		}
		if !errors.Is(err, unix.ENOTDIR) || path == filepath.Dir(path) {
			return &fs.PathError{Op: "stat", Path: path, Err: err}
		}
		path = filepath.Dir(path)
	}
}
