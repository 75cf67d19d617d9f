package vercel

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"

	"github.com/isthmus/isthmus/adapters"
)

// pieceSize bounds what is held of a file: a tar says the size of each of its files before it.
const pieceSize = 1 << 20

// assemble joins the pieces in their order, and takes the place of what is there in one step.
const assemble = `mkdir -p "$(dirname "$2")" && cat "$1"/* >"$2.$$" && chmod "$3" "$2.$$" && mv -f "$2.$$" "$2" || { rm -f "$2.$$"; exit 1; }
rm -rf "$1"`

// Put writes a file. The vendor unpacks it as a user who may not write everywhere, so root puts it in its place.
func (p *place) Put(ctx context.Context, boxID, path string, mode fs.FileMode, content io.Reader) error {
	k, err := p.recall(ctx, boxID)
	if err != nil {
		return err
	}
	folder := "tmp/.isthmus-" + rand.Text()
	read, write := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := pack(write, folder, content)
		packed <- err
		_ = write.CloseWithError(err)
	}()
	err = p.api.send(ctx, request{
		method: http.MethodPost, path: "/v2/sandboxes/sessions/" + k.session + "/fs/write", content: read,
		header: http.Header{"Content-Type": {"application/gzip"}, "X-Cwd": {"/"}},
	})
	_ = read.Close()
	if packErr := <-packed; packErr != nil && !errors.Is(packErr, io.ErrClosedPipe) {
		return adapters.Wrap(adapters.KindInternal, packErr, "the file for the sandbox cannot be read")
	}
	if err != nil {
		return err
	}
	return p.shell(ctx, boxID, assemble, "/"+folder, path, fmt.Sprintf("%04o", mode.Perm()))
}

// pack writes the content as a tar.gz of numbered pieces.
func pack(to io.Writer, folder string, content io.Reader) error {
	zipped := gzip.NewWriter(to)
	archive := tar.NewWriter(zipped)
	piece := make([]byte, pieceSize)
	for number := 0; ; number++ {
		n, err := io.ReadFull(content, piece)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		if n > 0 || number == 0 {
			header := &tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprintf("%s/%06d", folder, number), Mode: 0o600, Size: int64(n)}
			if err := archive.WriteHeader(header); err != nil {
				return err
			}
			if _, err := io.Copy(archive, bytes.NewReader(piece[:n])); err != nil {
				return err
			}
		}
		if err != nil {
			return errors.Join(archive.Close(), zipped.Close())
		}
	}
}
