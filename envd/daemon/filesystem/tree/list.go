package tree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/envd/filesystem"
)

// ErrTooMany says that a listing was given up because it grew past its bound.
var ErrTooMany = errors.New("the listing has too many entries: list with a smaller depth")

// maxEntries bounds one listing, which is one message and so lies in memory as a whole.
const maxEntries = 1_000_000

// List describes what is below a folder, depth levels deep (at least 1), in lexical order, a folder before its
// contents. A link at the start is followed, links below are described and not entered. Paths begin with the
// path that was asked for. What vanishes meanwhile is left out. The error is a *fs.PathError, ErrTooMany or
// that of the context.
func (t *Tree) List(ctx context.Context, path string, depth uint32) ([]*filesystem.EntryInfo, error) {
	fd, err := t.openat(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	l := listing{tree: t, ctx: ctx}
	if err := l.folder(fd, path, max(depth, 1)); err != nil {
		return nil, err
	}
	return l.entries, nil
}

type listing struct {
	tree    *Tree
	ctx     context.Context
	entries []*filesystem.EntryInfo
}

// folder lists an open folder and closes it.
func (l *listing) folder(fd int, path string, depth uint32) error {
	dir := os.NewFile(uintptr(fd), path)
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		if len(l.entries) >= maxEntries {
			return ErrTooMany
		}
		entry, err := l.tree.child(fd, name, filepath.Join(path, name))
		if err != nil {
			continue
		}
		l.entries = append(l.entries, entry)
		if depth > 1 && entry.Type == filesystem.FileType_FILE_TYPE_DIRECTORY && entry.SymlinkTarget == nil {
			if err := l.inside(fd, name, entry.Path, depth-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// inside lists a folder below; one that cannot be opened any more, or is the daemon's own, shows no contents.
func (l *listing) inside(parent int, name, path string, depth uint32) error {
	fd, err := l.tree.openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	if err := l.folder(fd, path, depth); !errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil
}
