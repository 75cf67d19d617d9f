//go:build linux

package machine

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
)

// daemonURL is where the client of a box finds the daemon; the host is nobody's.
const daemonURL = "http://box"

// Write writes a file as root, makes the folders above it, and replaces what is there in one step. The path is
// absolute.
func (b *Box) Write(ctx context.Context, name string, mode fs.FileMode, r io.Reader) error {
	if !path.IsAbs(name) {
		return adapters.Errorf(adapters.KindInvalid, "the path %s is not absolute", name)
	}
	name = path.Clean(name)
	part := path.Join(path.Dir(name), ".write-"+rand.Text())
	if err := b.upload(ctx, part, r); err != nil {
		_, _ = b.sh(context.WithoutCancel(ctx), `rm -f -- "$1"`, part)
		return err
	}
	text, err := b.sh(ctx, `chmod "$3" "$1" && mv -fT -- "$1" "$2" || { rm -f -- "$1"; exit 1; }`, part, name, fmt.Sprintf("%04o", unixMode(mode)))
	if err != nil {
		return adapters.Wrap(adapters.KindOf(err), err, "the file "+name+" cannot be written: "+text)
	}
	return nil
}

// unixMode is a mode as chmod writes it.
func unixMode(mode fs.FileMode) uint32 {
	bits := uint32(mode.Perm())
	for _, special := range []struct {
		is  fs.FileMode
		bit uint32
	}{{fs.ModeSetuid, 0o4000}, {fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000}} {
		if mode&special.is != 0 {
			bits |= special.bit
		}
	}
	return bits
}

// Read opens a file as root. KindNotFound when there is none.
func (b *Box) Read(ctx context.Context, name string) (io.ReadCloser, error) {
	response, err := b.files(ctx, http.MethodGet, name, nil)
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

func (b *Box) upload(ctx context.Context, name string, r io.Reader) error {
	response, err := b.files(ctx, http.MethodPost, name, r)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// files asks the daemon for a file, or gives it one.
func (b *Box) files(ctx context.Context, method, name string, content io.Reader) (*http.Response, error) {
	query := url.Values{"path": {name}, "username": {"root"}}
	request, err := http.NewRequestWithContext(ctx, method, daemonURL+"/files?"+query.Encode(), content)
	if err != nil {
		return nil, adapters.Wrap(adapters.KindInternal, err, "the request for a file cannot be made")
	}
	request.Header.Set(envd.HeaderTransport, b.transport)
	if content != nil {
		request.Header.Set("Content-Type", "application/octet-stream")
	}
	response, err := b.client.Do(request)
	if err != nil {
		return nil, b.broken(ctx, err)
	}
	if response.StatusCode/100 == 2 {
		return response, nil
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxText))
	_ = response.Body.Close()
	kind := adapters.KindUnavailable
	switch response.StatusCode {
	case http.StatusNotFound:
		kind = adapters.KindNotFound
	case http.StatusBadRequest:
		kind = adapters.KindInvalid
	}
	return nil, adapters.Errorf(kind, "the file %s: %s: %s", name, response.Status, text)
}

// broken classifies a call that had no answer: the box has ended, the caller has, or the daemon is busy.
func (b *Box) broken(ctx context.Context, err error) error {
	select {
	case <-b.Ended():
		return adapters.Wrap(adapters.KindNotFound, err, "the box has ended")
	default:
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return adapters.Wrap(adapters.KindUnavailable, err, "the box does not answer")
}
