package keep

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// mark is what tells whether something was changed. No program can set CTime.
type mark struct {
	Path         string // below the root, without a slash before it
	Mode         uint32
	UID, GID     uint32
	Size         int64
	MTime, CTime int64
}

func (m mark) dir() bool { return m.Mode&syscall.S_IFMT == syscall.S_IFDIR }

// kept are the types of files that are kept: sockets end with who listened, and devices cannot be made in a box.
func kept(mode uint32) bool {
	switch mode & syscall.S_IFMT {
	case syscall.S_IFREG, syscall.S_IFDIR, syscall.S_IFLNK, syscall.S_IFIFO:
		return true
	}
	return false
}

// order is the order of walks: a folder, what is in it, and then what comes after it by name.
func order(a, b string) int {
	return strings.Compare(strings.ReplaceAll(a, "/", "\x00"), strings.ReplaceAll(b, "/", "\x00"))
}

// walk tells of everything below the root that is kept, in order.
func (k *Keep) walk(ctx context.Context, tell func(mark) error) error {
	return filepath.WalkDir(k.root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case path == k.root:
			return nil
		case k.mounts[path] && entry.IsDir():
			return filepath.SkipDir
		case k.mounts[path]:
			return nil
		}
		var stat syscall.Stat_t
		if err := syscall.Lstat(path, &stat); err != nil {
			return ignoreAbsent(err)
		}
		if !kept(stat.Mode) {
			return nil
		}
		name, err := filepath.Rel(k.root, path)
		if err != nil {
			return err
		}
		m := mark{Path: name, Mode: stat.Mode, UID: stat.Uid, GID: stat.Gid, Size: stat.Size, MTime: stat.Mtim.Nano(), CTime: stat.Ctim.Nano()}
		if m.dir() {
			m.Size = 0 // it says how the file system stores it
		}
		return tell(m)
	})
}

// Index notes what is there now, for a later Save to compare with. It is called before anything runs.
func (k *Keep) Index(ctx context.Context) error {
	return k.write(ctx, indexName, func(ctx context.Context, file *os.File) error {
		buffer := bufio.NewWriter(file)
		encoder := gob.NewEncoder(buffer)
		if err := k.walk(ctx, func(m mark) error { return encoder.Encode(m) }); err != nil {
			return err
		}
		return buffer.Flush()
	})
}

// index reads what Index wrote, one after the other.
type index struct {
	file    *os.File
	decoder *gob.Decoder
	next    *mark // nil: there is no more
}

func (k *Keep) openIndex() (*index, error) {
	file, err := os.Open(k.at(indexName))
	if err != nil {
		return nil, err
	}
	i := &index{file: file, decoder: gob.NewDecoder(bufio.NewReader(file))}
	return i, i.advance()
}

func (i *index) advance() error {
	i.next = &mark{}
	err := i.decoder.Decode(i.next)
	if errors.Is(err, io.EOF) {
		i.next = nil
		return nil
	}
	return err
}

func (i *index) close() { _ = i.file.Close() }
