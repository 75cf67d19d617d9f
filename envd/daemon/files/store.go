package files

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/envd/daemon/filesystem/tree"
)

// fileMode is what new files get, less the umask.
const fileMode = 0o666

// incoming is what an upload wants to be stored: its length is that of the request's body, below 0 when not
// known, and is only for messages.
type incoming struct {
	owner    tree.Owner
	metadata map[string]string
	length   int64
}

// bodyError tells a failure to read the request from one to write the file.
type bodyError struct{ err error }

func (e *bodyError) Error() string { return e.err.Error() }
func (e *bodyError) Unwrap() error { return e.err }

// store writes a file. The order of what it does is what those who watch the file see, and clients rely on it:
// created or not, owned, truncated, written, given its metadata. It returns a *fault, or a *bodyError.
func (h *Handler) store(path string, body io.Reader, in incoming) error {
	fd, created, err := h.create(path, in.owner)
	if err != nil {
		return storeFault(err, path, in)
	}
	err = h.fill(fd, created, body, in)
	// Some file systems tell only now that there was no room.
	if closed := unix.Close(fd); err == nil {
		err = closed
	}
	if err != nil {
		return storeFault(err, path, in)
	}
	return nil
}

// create opens a file for writing, making it and its parents when they are missing. An existing file keeps its
// mode and is not truncated yet.
func (h *Handler) create(path string, owner tree.Owner) (fd int, created bool, err error) {
	fd, err = h.tree.Open(path, unix.O_WRONLY, 0)
	if !missing(err) {
		return fd, false, err
	}
	const anew = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL
	fd, err = h.tree.Open(path, anew, fileMode)
	if missing(err) {
		if _, err := h.tree.MakeFolders(filepath.Dir(path), owner); err != nil {
			return -1, false, &folderError{err}
		}
		fd, err = h.tree.Open(path, anew, fileMode)
	}
	if errors.Is(err, unix.EEXIST) {
		// A link that leads nowhere yet, or somebody was faster.
		fd, err = h.tree.Open(path, unix.O_WRONLY|unix.O_CREAT, fileMode)
		return fd, false, err
	}
	return fd, err == nil, err
}

// missing also covers a parent that is a file, of which making the parents will complain.
func missing(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) }

// folderError is a failure to make the parents.
type folderError struct{ err error }

func (e *folderError) Error() string { return e.err.Error() }
func (e *folderError) Unwrap() error { return e.err }

// errNotRegular refuses FIFOs, sockets and devices.
var errNotRegular = errors.New("not a regular file")

// fill gives an open file its owner, content and metadata.
func (h *Handler) fill(fd int, created bool, body io.Reader, in incoming) error {
	if !created {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT != unix.S_IFREG {
			return errNotRegular
		}
	}
	// Switches under /proc and /sys have no owner to change and nothing to truncate.
	if err := unix.Fchown(fd, int(in.owner.UID), int(in.owner.GID)); err != nil && !isPseudo(fd) {
		return os.NewSyscallError("chown", err)
	}
	if !created {
		if err := unix.Ftruncate(fd, 0); err != nil && !isPseudo(fd) {
			return os.NewSyscallError("truncate", err)
		}
	}
	if err := h.write(fd, body); err != nil {
		return err
	}
	replace := tree.ReplaceMetadata
	if created {
		replace = tree.AddMetadata
	}
	err := replace(fd, in.metadata)
	if err == unix.ENOTSUP {
		return errors.New("the file was written, but this file system cannot keep its metadata")
	}
	return err
}

// write copies the body in pieces as large as the buffer, so that a small file is written at once.
func (h *Handler) write(fd int, body io.Reader) error {
	buffer := h.buffers.Get().(*[]byte)
	defer h.buffers.Put(buffer)
	for {
		piece, end := gather(body, *buffer)
		for len(piece) > 0 {
			n, err := unix.Write(fd, piece)
			if err == unix.EINTR {
				continue
			}
			if err != nil {
				return os.NewSyscallError("write", err)
			}
			piece = piece[n:]
		}
		switch end {
		case nil:
		case io.EOF:
			return nil
		default:
			return &bodyError{end}
		}
	}
}

// gather reads until the buffer is full or the body ends. Unlike io.ReadFull it leaves the error as it is: a
// body that breaks off must not pass for a short one.
func gather(body io.Reader, buffer []byte) (piece []byte, err error) {
	n := 0
	for n < len(buffer) && err == nil {
		var m int
		m, err = body.Read(buffer[n:])
		n += m
	}
	return buffer[:n], err
}

// storeFault words what went wrong for the client.
func storeFault(err error, path string, in incoming) error {
	var body *bodyError
	var folder *folderError
	switch {
	case errors.As(err, &body):
		return body
	case errors.Is(err, unix.EISDIR):
		return refuse(http.StatusBadRequest, "path is a directory: %s", path)
	case errors.Is(err, unix.ENXIO), errors.Is(err, errNotRegular):
		return refuse(http.StatusBadRequest, "path is not a regular file: %s", path)
	case errors.Is(err, tree.ErrRefused):
		return refuse(http.StatusBadRequest, "%s", err)
	}
	if f := full(err, path, in.length); f != nil {
		return f
	}
	if errors.As(err, &folder) {
		return refuse(http.StatusInternalServerError, "error ensuring directories: %s", err)
	}
	return refuse(http.StatusInternalServerError, "error writing file '%s': %s", path, err)
}
