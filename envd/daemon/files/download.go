package files

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/gzip"
	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/envd/daemon/filesystem/tree"
	"github.com/isthmus/isthmus/envd/signature"
)

// download answers GET /files.
func (h *Handler) download(w http.ResponseWriter, r *http.Request) *fault {
	user, refused := h.admit(r)
	if refused != nil {
		return refused
	}
	path, refused := h.expand(user, r.URL.Query().Get(signature.ParamPath))
	if refused != nil {
		return refused
	}
	file, st, refused := h.openRegular(path)
	if refused != nil {
		return refused
	}
	defer file.Close()
	coding, err := acceptable(r.Header)
	if err != nil {
		return refuse(http.StatusNotAcceptable, "%s", err)
	}
	header := w.Header()
	header.Add("Vary", "Accept-Encoding")
	if disposition := mime.FormatMediaType("inline", map[string]string{"filename": filepath.Base(path)}); disposition != "" {
		header.Set("Content-Disposition", disposition)
	}
	switch {
	case coding == gzipCoding:
		h.sendGzip(w, file)
	case st.pseudo:
		setType(header, path)
		h.send(w, w, file)
	default:
		http.ServeContent(w, r, filepath.Base(path), st.modified, file)
	}
	return nil
}

// status is what matters of an open file. A pseudo file's content is made up by the kernel while it is read,
// so that its size says nothing.
type status struct {
	modified time.Time
	pseudo   bool
}

// openRegular opens a file for reading. What is neither a file nor a folder would block or never end.
func (h *Handler) openRegular(path string) (*os.File, status, *fault) {
	fd, err := h.tree.Open(path, unix.O_RDONLY, 0)
	switch {
	case err == nil:
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return nil, status{}, refuse(http.StatusNotFound, "path '%s' does not exist", path)
	case errors.Is(err, unix.ENXIO):
		return nil, status{}, refuse(http.StatusBadRequest, "path '%s' is not a regular file", path)
	case errors.Is(err, tree.ErrRefused):
		return nil, status{}, refuse(http.StatusBadRequest, "%s", err)
	default:
		return nil, status{}, refuse(http.StatusInternalServerError, "error opening file '%s': %s", path, err)
	}
	st, refused := regular(fd, path)
	if refused != nil {
		unix.Close(fd)
		return nil, status{}, refused
	}
	return os.NewFile(uintptr(fd), path), st, nil
}

func regular(fd int, path string) (status, *fault) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return status{}, refuse(http.StatusInternalServerError, "error checking if path exists '%s': %s", path, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return status{modified: time.Unix(st.Mtim.Unix()), pseudo: isPseudo(fd)}, nil
	case unix.S_IFDIR:
		return status{}, refuse(http.StatusBadRequest, "path '%s' is a directory", path)
	}
	return status{}, refuse(http.StatusBadRequest, "path '%s' is not a regular file", path)
}

// isPseudo reports whether an open file is one of the kernel's own.
func isPseudo(fd int) bool {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return false
	}
	switch uint32(st.Type) {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC,
		unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC:
		return true
	}
	return false
}

// setType names the content type by the path's extension.
func setType(header http.Header, path string) {
	kind := mime.TypeByExtension(filepath.Ext(path))
	if kind == "" {
		kind = "application/octet-stream"
	}
	header.Set("Content-Type", kind)
}

// sendGzip compresses while it sends. Its length is not known, so there is none in the header.
func (h *Handler) sendGzip(w http.ResponseWriter, file *os.File) {
	w.Header().Set("Content-Encoding", gzipCoding)
	setType(w.Header(), file.Name())
	zipper := h.zippers.Get().(*gzip.Writer)
	defer h.zippers.Put(zipper)
	zipper.Reset(w)
	h.send(w, zipper, file)
	if zipper.Close() != nil {
		panic(http.ErrAbortHandler)
	}
}

// send copies a file whose length is not announced. A failure breaks the answer off, for else the client
// would take what it has for the whole.
func (h *Handler) send(w http.ResponseWriter, to io.Writer, file *os.File) {
	w.WriteHeader(http.StatusOK)
	buffer := h.buffers.Get().(*[]byte)
	defer h.buffers.Put(buffer)
	if _, err := io.CopyBuffer(onlyWriter{to}, onlyReader{file}, *buffer); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// onlyWriter and onlyReader hide what else a value can do, so that the copy uses our buffer.
type onlyWriter struct{ io.Writer }

type onlyReader struct{ io.Reader }
