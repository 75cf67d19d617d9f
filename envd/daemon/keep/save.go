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
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// recordGone marks an entry of the archive that says that something of the image is gone.
	recordGone = "ISTHMUS.gone"
	// recordAttribute is the prefix of an extended attribute, as tar programs have it.
	recordAttribute = "SCHILY.xattr."
)

// Save writes what is different from the index. Nothing should change files meanwhile: a file that does is an error.
func (k *Keep) Save(ctx context.Context) error {
	before, err := k.openIndex()
	if err != nil {
		return fmt.Errorf("what the image brought is not known: %w", err)
	}
	defer before.close()
	if err := k.Forget(); err != nil { // both together might not fit
		return err
	}
	return k.write(ctx, archiveName, func(ctx context.Context, file *os.File) error {
		buffer := bufio.NewWriterSize(file, 1<<20)
		s := &saving{keep: k, before: before, out: tar.NewWriter(buffer), linked: map[inode]string{}}
		if err := k.walk(ctx, s.see); err != nil {
			return err
		}
		for before.next != nil {
			if err := s.gone(); err != nil {
				return err
			}
		}
		return errors.Join(s.out.Close(), buffer.Flush())
	})
}

type inode struct{ device, number uint64 }

type saving struct {
	keep   *Keep
	before *index
	out    *tar.Writer
	linked map[inode]string // names of saved files with more than one
	over   string           // what is below this is gone anyway
}

// see compares what is there with the index, which has the same order.
func (s *saving) see(m mark) error {
	for s.before.next != nil && order(s.before.next.Path, m.Path) < 0 {
		if err := s.gone(); err != nil {
			return err
		}
	}
	if s.before.next != nil && s.before.next.Path == m.Path {
		was := *s.before.next
		if err := s.before.advance(); err != nil {
			return err
		}
		if was == m {
			return nil
		}
		if was.dir() && !m.dir() {
			s.over = m.Path
		}
	}
	return s.add(m)
}

// gone notes that the next of the index is not there any more.
func (s *saving) gone() error {
	path := s.before.next.Path
	if err := s.before.advance(); err != nil {
		return err
	}
	if s.over != "" && strings.HasPrefix(path, s.over+"/") {
		return nil
	}
	s.over = path
	return s.out.WriteHeader(&tar.Header{Name: path, Typeflag: tar.TypeReg, Format: tar.FormatPAX, PAXRecords: map[string]string{recordGone: "1"}})
}

// add writes one file to the archive.
func (s *saving) add(m mark) error {
	path := filepath.Join(s.keep.root, m.Path)
	header := &tar.Header{
		Name: m.Path, Mode: int64(m.Mode & 0o7777), Uid: int(m.UID), Gid: int(m.GID), ModTime: time.Unix(0, m.MTime), Format: tar.FormatPAX,
	}
	switch m.Mode & syscall.S_IFMT {
	case syscall.S_IFDIR:
		header.Typeflag = tar.TypeDir
	case syscall.S_IFIFO:
		header.Typeflag = tar.TypeFifo
	case syscall.S_IFLNK:
		target, err := os.Readlink(path)
		if err != nil {
			return err
		}
		header.Typeflag, header.Linkname = tar.TypeSymlink, target
	default:
		return s.addFile(path, header)
	}
	return s.head(path, header)
}

func (s *saving) head(path string, header *tar.Header) (err error) {
	if header.PAXRecords, err = attributes(path); err != nil {
		return err
	}
	return s.out.WriteHeader(header)
}

// addFile writes a regular file, or that it is another name of one that was written.
func (s *saving) addFile(path string, header *tar.Header) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	var stat syscall.Stat_t
	if err := syscall.Fstat(int(file.Fd()), &stat); err != nil {
		return err
	}
	header.Typeflag, header.Size = tar.TypeReg, stat.Size
	if id := (inode{stat.Dev, stat.Ino}); stat.Nlink > 1 {
		if first, there := s.linked[id]; there {
			header.Typeflag, header.Linkname, header.Size = tar.TypeLink, first, 0
			return s.out.WriteHeader(header)
		}
		s.linked[id] = header.Name
	}
	if err := s.head(path, header); err != nil {
		return err
	}
	if n, err := io.Copy(s.out, io.LimitReader(file, header.Size)); err != nil || n != header.Size {
		return errors.Join(err, fmt.Errorf("%s changed while it was kept", header.Name))
	}
	return nil
}

// attributes are the extended attributes of a file that programs see, as records of an archive.
func attributes(path string) (map[string]string, error) {
	names := make([]byte, 64<<10)
	n, err := unix.Llistxattr(path, names)
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS) || n == 0 && err == nil {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("attributes of %s: %w", path, err)
	}
	records := map[string]string{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names[:n]), "\x00"), "\x00") {
		if name != "security.capability" && !strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "system.posix_acl_") {
			continue
		}
		value := make([]byte, 64<<10)
		size, err := unix.Lgetxattr(path, name, value)
		if err != nil {
			return nil, fmt.Errorf("the attribute %s of %s: %w", name, path, err)
		}
		records[recordAttribute+name] = string(value[:size])
	}
	return records, nil
}
