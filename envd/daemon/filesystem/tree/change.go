package tree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Remove removes a file, a link, or a folder with all that is in it. A path that is not there is success. The
// root folder is refused. The error is a *fs.PathError.
func (t *Tree) Remove(path string) error {
	parent, name, err := t.parent(path)
	switch err {
	case nil:
	case unix.ENOENT, unix.ENOTDIR:
		return nil
	default:
		return &fs.PathError{Op: "unlink", Path: path, Err: err}
	}
	defer unix.Close(parent)
	err = os.RemoveAll(link(parent) + "/" + name)
	var fault *fs.PathError
	if errors.As(err, &fault) {
		// What is below the descriptor's own path is below the path that was asked for.
		fault.Path = path + strings.TrimPrefix(fault.Path, link(parent)+"/"+name)
	}
	return err
}

// Move renames a path within one file system. An existing file is replaced, an existing folder is not. The
// error is a *os.LinkError with the paths as they were asked for.
func (t *Tree) Move(source, destination string) error {
	err := t.move(source, destination)
	var fault *os.LinkError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &fault):
		err = fault.Err
	}
	return &os.LinkError{Op: "rename", Old: source, New: destination, Err: err}
}

func (t *Tree) move(source, destination string) error {
	from, name, err := t.parent(source)
	if err != nil {
		return err
	}
	defer unix.Close(from)
	to, newName, err := t.parent(destination)
	if err != nil {
		return err
	}
	defer unix.Close(to)
	return os.Rename(link(from)+"/"+name, link(to)+"/"+newName)
}

// parent opens the folder that a path's last name is in, which is then worked on without following it. The
// error is an errno or ErrRefused.
func (t *Tree) parent(path string) (dir int, name string, err error) {
	trimmed := strings.TrimRight(path, "/")
	folder, name := filepath.Split(trimmed)
	switch {
	case trimmed == "", name == ".", name == "..":
		return -1, "", unix.EINVAL
	case folder == "":
		folder = "."
	}
	dir, err = t.openat(unix.AT_FDCWD, folder, unix.O_PATH|unix.O_DIRECTORY, 0)
	return dir, name, err
}
