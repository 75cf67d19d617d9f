package images

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// OCI's marks for what a layer removes.
const (
	whiteoutPrefix = ".wh."
	whiteoutOpaque = ".wh..wh..opq"
	capabilities   = "security.capability"
)

// unpack applies a tar stream as one layer over the tree: OCI's whiteouts remove, everything else adds or
// replaces. Nothing outside the tree can be reached, whatever names and links the stream holds: links lead
// where they would with the tree as the root. Devices and pipes are passed over: a box has its own. Owners
// are kept when this process is root; else every file is this user's and every folder can be entered by it.
func unpack(dir string, stream io.Reader) error {
	top, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer top.Close()
	u := &unpacker{top: top, owners: os.Geteuid() == 0, buffer: make([]byte, 1<<20)}
	defer u.leave()
	for r := tar.NewReader(stream); ; {
		h, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return u.settle()
		case err != nil:
			return fmt.Errorf("reading the archive: %w", err)
		}
		if err := u.entry(h, r); err != nil {
			return fmt.Errorf("unpacking %q: %w", h.Name, err)
		}
	}
}

// unpacker keeps the folder of the last entry open: its neighbours follow, mostly. It lets go of it with
// whatever may change what names mean.
type unpacker struct {
	top, folder *os.Root
	asked, at   string // the folder's name in the stream, and what it means
	owners      bool
	buffer      []byte
	folders     []*tar.Header // their modes and times are set last, when nothing is written into them
}

// entry applies one entry.
func (u *unpacker) entry(h *tar.Header, r io.Reader) error {
	name := strings.TrimPrefix(path.Clean("/"+h.Name), "/")
	if name == "" {
		return nil // the root itself stays as it is
	}
	in, err := u.enter(path.Dir(name))
	if err != nil {
		return err
	}
	base := path.Base(name)
	if h.Typeflag != tar.TypeReg || strings.HasPrefix(base, whiteoutPrefix) {
		defer u.leave()
	}
	name = path.Join(u.at, base)
	switch {
	case base == whiteoutOpaque:
		return empty(in)
	case strings.HasPrefix(base, whiteoutPrefix):
		return in.RemoveAll(strings.TrimPrefix(base, whiteoutPrefix))
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return u.makeFolder(in, base, name, h)
	case tar.TypeReg:
		return u.makeFile(in, base, h, r)
	case tar.TypeSymlink:
		return u.makeLink(in, base, h)
	case tar.TypeLink:
		return u.makeHardLink(in, base, name, h)
	}
	return nil
}

// enter returns the folder that a name in the stream means, made when it is missing.
func (u *unpacker) enter(asked string) (*os.Root, error) {
	if u.folder != nil && u.asked == asked {
		return u.folder, nil
	}
	u.leave()
	at, err := follow(u.top, asked)
	if err != nil {
		return nil, err
	}
	in, err := u.top.OpenRoot(at)
	if errors.Is(err, fs.ErrNotExist) {
		if err = u.top.MkdirAll(at, 0o755); err == nil {
			in, err = u.top.OpenRoot(at)
		}
	}
	if err != nil {
		return nil, err
	}
	u.folder, u.asked, u.at = in, asked, at
	return in, nil
}

func (u *unpacker) leave() {
	if u.folder != nil {
		_ = u.folder.Close()
		u.folder = nil
	}
}

func (u *unpacker) makeFolder(in *os.Root, base, name string, h *tar.Header) error {
	if fi, err := in.Lstat(base); err != nil || !fi.IsDir() {
		if err := in.RemoveAll(base); err != nil {
			return err
		}
		if err := in.Mkdir(base, 0o755); err != nil {
			return err
		}
	}
	h.Name = name
	u.folders = append(u.folders, h)
	return u.chown(in, base, h)
}

func (u *unpacker) makeFile(in *os.Root, base string, h *tar.Header, r io.Reader) error {
	const flags = os.O_CREATE | os.O_EXCL | os.O_WRONLY
	f, err := in.OpenFile(base, flags, 0o600)
	if errors.Is(err, fs.ErrExist) {
		defer u.leave() // it may have been a link
		if err = in.RemoveAll(base); err == nil {
			f, err = in.OpenFile(base, flags, 0o600)
		}
	}
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{f}, r, u.buffer)
	if err == nil && u.owners {
		err = f.Chown(h.Uid, h.Gid)
	}
	if err == nil {
		err = f.Chmod(mode(h)) // after chown, which clears the set-user-id bit
	}
	if value, ok := h.PAXRecords["SCHILY.xattr."+capabilities]; ok && err == nil && u.owners {
		_ = unix.Fsetxattr(int(f.Fd()), capabilities, []byte(value), 0) // where the file system has them
	}
	if err == nil {
		at := unix.NsecToTimeval(h.ModTime.UnixNano())
		err = unix.Futimes(int(f.Fd()), []unix.Timeval{at, at})
	}
	return errors.Join(err, f.Close())
}

func (u *unpacker) makeLink(in *os.Root, base string, h *tar.Header) error {
	if err := in.RemoveAll(base); err != nil {
		return err
	}
	if err := in.Symlink(h.Linkname, base); err != nil {
		return err
	}
	return u.chown(in, base, h)
}

func (u *unpacker) makeHardLink(in *os.Root, base, name string, h *tar.Header) error {
	old, err := locate(u.top, strings.TrimPrefix(path.Clean("/"+h.Linkname), "/"))
	if err != nil {
		return err
	}
	if old == name {
		return nil
	}
	if err := in.RemoveAll(base); err != nil {
		return err
	}
	return u.top.Link(old, name)
}

func (u *unpacker) chown(in *os.Root, base string, h *tar.Header) error {
	if !u.owners {
		return nil
	}
	return in.Lchown(base, h.Uid, h.Gid)
}

// settle gives the folders their modes and times, the innermost first. One that a later entry replaced is
// passed over.
func (u *unpacker) settle() error {
	u.leave()
	for i := len(u.folders) - 1; i >= 0; i-- {
		h := u.folders[i]
		if fi, err := u.top.Lstat(h.Name); err != nil || !fi.IsDir() {
			continue
		}
		m := mode(h)
		if !u.owners {
			m |= 0o700
		}
		if err := u.top.Chmod(h.Name, m); err != nil {
			return err
		}
		if err := u.top.Chtimes(h.Name, time.Time{}, h.ModTime); err != nil {
			return err
		}
	}
	return nil
}

// mode turns tar's bits into Go's.
func mode(h *tar.Header) fs.FileMode {
	m := fs.FileMode(h.Mode) & fs.ModePerm
	for bit, set := range map[int64]fs.FileMode{unix.S_ISUID: fs.ModeSetuid, unix.S_ISGID: fs.ModeSetgid, unix.S_ISVTX: fs.ModeSticky} {
		if h.Mode&bit != 0 {
			m |= set
		}
	}
	return m
}

// empty removes everything in the folder.
func empty(in *os.Root) error {
	d, err := in.Open(".")
	if err != nil {
		return err
	}
	names, err := d.Readdirnames(-1)
	if err = errors.Join(err, d.Close()); err != nil {
		return err
	}
	for _, n := range names {
		if err := in.RemoveAll(n); err != nil {
			return err
		}
	}
	return nil
}
