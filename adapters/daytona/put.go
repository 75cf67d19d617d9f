package daytona

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"net/url"
	"path"

	"github.com/isthmus/isthmus/adapters"
)

// Put writes a file in a box: beside its place first, and then there in one step.
func (p *Provider) Put(ctx context.Context, boxID, name string, mode fs.FileMode, content io.Reader) error {
	part := path.Join(path.Dir(name), ".isthmus-"+rand.Text())
	if err := p.shell(ctx, boxID, `mkdir -p "$1"`, path.Dir(name)); err != nil {
		return err
	}
	toolbox, err := p.toolbox(ctx, boxID)
	if err == nil {
		err = p.upload(ctx, toolbox, part, content)
	}
	if err != nil {
		return err
	}
	return p.shell(ctx, boxID, `chmod "$1" "$2" && mv -f "$2" "$3"`, fmt.Sprintf("%o", mode.Perm()), part, name)
}

// upload sends one file as the form that the daemon reads: its path first, then its content.
func (p *Provider) upload(ctx context.Context, toolbox *url.URL, name string, content io.Reader) error {
	body, into := io.Pipe()
	form := multipart.NewWriter(into)
	written := make(chan struct{})
	go func() {
		defer close(written)
		err := form.WriteField("files[0].path", name)
		if err == nil {
			var file io.Writer
			if file, err = form.CreateFormFile("files[0].file", path.Base(name)); err == nil {
				_, err = io.Copy(file, content)
			}
		}
		if err == nil {
			err = form.Close()
		}
		_ = into.CloseWithError(err)
	}()
	err := p.api.send(ctx, request{
		method: http.MethodPost, at: toolbox, path: "/files/bulk-upload", content: body, contentType: form.FormDataContentType(),
	})
	_ = body.CloseWithError(io.ErrClosedPipe)
	<-written
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if kind := adapters.KindOf(err); err != nil && kind == adapters.KindInvalid {
		return adapters.Wrap(adapters.KindUnavailable, err, "the file could not be written in the sandbox: "+err.Error())
	}
	return err
}
