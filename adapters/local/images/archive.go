package images

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/klauspost/compress/zstd"
)

// archive is an image archive whose files are opened by name.
type archive interface {
	open(name string) (io.ReadCloser, error)
}

// rootArchive is an OCI layout in a folder; no name leads out of it.
type rootArchive struct{ *os.Root }

func (a rootArchive) open(name string) (io.ReadCloser, error) { return a.Open(name) }

// tarArchive is a plain tar with the place of each file.
type tarArchive struct {
	file  io.ReaderAt
	files map[string]span
	links map[string]string
}

type span struct{ start, size int64 }

// indexTar notes where each file lies.
func indexTar(f *os.File) (*tarArchive, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	a := &tarArchive{file: f, files: map[string]span{}, links: map[string]string{}}
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return a, nil
		case err != nil:
			return nil, err
		}
		name := path.Clean(h.Name)
		switch h.Typeflag {
		case tar.TypeReg:
			start, err := f.Seek(0, io.SeekCurrent)
			if err != nil {
				return nil, err
			}
			a.files[name] = span{start, h.Size}
		case tar.TypeSymlink: // Docker links a layer that is there twice
			a.links[name] = path.Join(path.Dir(name), h.Linkname)
		case tar.TypeLink:
			a.links[name] = path.Clean(h.Linkname)
		}
	}
}

func (a *tarArchive) has(name string) bool { _, ok := a.files[name]; return ok }

func (a *tarArchive) open(name string) (io.ReadCloser, error) {
	name = path.Clean(name)
	if to, ok := a.links[name]; ok {
		name = to
	}
	s, ok := a.files[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(io.NewSectionReader(a.file, s.start, s.size)), nil
}

// decompress looks at the first bytes and uncompresses gzip and zstd.
func decompress(r io.Reader) (out io.ReadCloser, compressed bool, err error) {
	b := bufio.NewReaderSize(r, 64<<10)
	head, err := b.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(b)
		return z, true, err
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, true, err
		}
		return z.IOReadCloser(), true, nil
	}
	return io.NopCloser(b), false, nil
}
