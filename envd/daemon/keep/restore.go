package keep

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Restore applies what Save wrote to a root file system of the same image. fs.ErrNotExist when nothing was saved.
func (k *Keep) Restore(ctx context.Context) error {
	file, err := os.Open(k.at(archiveName))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	archive := tar.NewReader(bufio.NewReaderSize(file, 1<<20))
	times := map[string]time.Time{} // of folders: they change with what is put into them
	for {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return touchAll(times)
		case err != nil:
			return fmt.Errorf("read what was kept: %w", err)
		case ctx.Err() != nil:
			return ctx.Err()
		}
		path := filepath.Join(k.root, header.Name)
		if _, known := times[filepath.Dir(path)]; !known {
			if info, err := os.Lstat(filepath.Dir(path)); err == nil {
				times[filepath.Dir(path)] = info.ModTime()
			}
		}
		if err := k.put(path, header, archive); err != nil {
			return fmt.Errorf("bring %s back: %w", header.Name, err)
		}
		if header.Typeflag == tar.TypeDir {
			times[path] = header.ModTime
		}
	}
}

// put makes one file as it was.
func (k *Keep) put(path string, header *tar.Header, content io.Reader) error {
	if header.PAXRecords[recordGone] != "" {
		return os.RemoveAll(path)
	}
	if info, err := os.Lstat(path); err == nil && (header.Typeflag != tar.TypeDir || !info.IsDir()) {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	var err error
	switch header.Typeflag {
	case tar.TypeDir:
		if err = os.Mkdir(path, folderMode); os.IsExist(err) {
			err = nil
		}
	case tar.TypeFifo:
		err = unix.Mkfifo(path, fileMode)
	case tar.TypeSymlink:
		err = os.Symlink(header.Linkname, path)
	case tar.TypeLink:
		return os.Link(filepath.Join(k.root, header.Linkname), path)
	default:
		err = fill(path, content)
	}
	if err != nil {
		return err
	}
	return dress(path, header)
}

func fill(path string, content io.Reader) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}

// dress gives a file its owner, mode, attributes and time. The owner comes first, because a change of it takes away
// bits of the mode and capabilities.
func dress(path string, header *tar.Header) error {
	if err := os.Lchown(path, header.Uid, header.Gid); err != nil {
		return err
	}
	if header.Typeflag != tar.TypeSymlink {
		if err := unix.Chmod(path, uint32(header.Mode)); err != nil {
			return err
		}
	}
	for record, value := range header.PAXRecords {
		if name, is := strings.CutPrefix(record, recordAttribute); is {
			if err := unix.Lsetxattr(path, name, []byte(value), 0); err != nil {
				return fmt.Errorf("its attribute %s: %w", name, err)
			}
		}
	}
	return touch(path, header.ModTime)
}

func touch(path string, at time.Time) error {
	stamp := unix.NsecToTimespec(at.UnixNano())
	return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{stamp, stamp}, unix.AT_SYMLINK_NOFOLLOW)
}

// touchAll gives folders the times that they had. One that is gone has none.
func touchAll(times map[string]time.Time) error {
	for path, at := range times {
		if err := ignoreAbsent(touch(path, at)); err != nil {
			return err
		}
	}
	return nil
}
