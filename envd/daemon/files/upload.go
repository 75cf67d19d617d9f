package files

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"

	"github.com/isthmus/isthmus/envd/daemon/identity"
	"github.com/isthmus/isthmus/envd/signature"
)

// maxFiles bounds the files of one upload, because the answer names them all.
const maxFiles = 100_000

// written is one item of the answer to an upload.
type written struct {
	Name     string            `json:"name"`
	Path     string            `json:"path"`
	Type     string            `json:"type"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// delivery is one request to POST /files.
type delivery struct {
	handler *Handler
	user    identity.User
	// path is the query's, nil when it names none.
	path *string
	in   incoming
	done []written
	seen map[string]bool
}

// upload answers POST /files.
func (h *Handler) upload(w http.ResponseWriter, r *http.Request) *fault {
	user, refused := h.admit(r)
	if refused != nil {
		return refused
	}
	attributes, err := metadata(r.Header)
	if err != nil {
		return refuse(http.StatusBadRequest, "%s", err)
	}
	body, err := unpack(r)
	if err != nil {
		return refuse(http.StatusBadRequest, "error decompressing request body: %s", err)
	}
	d := delivery{
		handler: h, user: user, done: []written{}, seen: map[string]bool{},
		in: incoming{owner: owner(user), metadata: attributes, length: r.ContentLength},
	}
	if query := r.URL.Query(); query.Has(signature.ParamPath) {
		path := query.Get(signature.ParamPath)
		d.path = &path
	}
	if refused := d.accept(r.Header.Get("Content-Type"), body); refused != nil {
		return refused
	}
	reply(w, http.StatusOK, d.done)
	return nil
}

// unpack undoes the compression of a request's body, if there is any.
func unpack(r *http.Request) (io.Reader, error) {
	switch coding := strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding"))); coding {
	case "", identityCoding:
		return r.Body, nil
	case gzipCoding:
		return gzip.NewReader(r.Body)
	default:
		return nil, fmt.Errorf("unsupported Content-Encoding: %s, supported: [gzip]", coding)
	}
}

// accept stores what the body holds, according to its type.
func (d *delivery) accept(contentType string, body io.Reader) *fault {
	kind, parameters, err := mime.ParseMediaType(contentType)
	switch {
	case strings.HasPrefix(kind, "multipart/"):
		if err != nil || parameters["boundary"] == "" {
			return refuse(http.StatusInternalServerError,
				"error parsing multipart form: no multipart boundary param in Content-Type")
		}
		return d.form(multipart.NewReader(body, parameters["boundary"]))
	case kind == "application/octet-stream":
		if d.path == nil {
			return refuse(http.StatusBadRequest, "path query parameter is required for raw body upload")
		}
		return d.store(*d.path, body, "error reading request body")
	}
	return refuse(http.StatusBadRequest,
		"unsupported content type: %s, expected multipart/form-data or application/octet-stream", contentType)
}

// form stores every part named file and passes over the others.
func (d *delivery) form(reader *multipart.Reader) *fault {
	for {
		part, err := reader.NextPart()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return refuse(bodyStatus(err), "error reading form: %s", err)
		}
		if part.FormName() != "file" {
			continue
		}
		path, err := d.target(part)
		if err != nil {
			return refuse(http.StatusBadRequest, "error getting multipart custom part file name: %s", err)
		}
		if refused := d.store(path, part, "error reading form"); refused != nil {
			return refused
		}
	}
}

// target is where a part goes: where the query says, else by its filename with the folders in it, which
// Part.FileName would cut off.
func (d *delivery) target(part *multipart.Part) (string, error) {
	if d.path != nil {
		return *d.path, nil
	}
	_, parameters, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	if err != nil {
		return "", err
	}
	name, ok := parameters["filename"]
	if !ok {
		return "", errors.New("filename not found in Content-Disposition header")
	}
	return name, nil
}

// store writes one file of the request.
func (d *delivery) store(name string, body io.Reader, reading string) *fault {
	path, refused := d.handler.expand(d.user, name)
	switch {
	case refused != nil:
		return refused
	case d.seen[path]:
		return refuse(http.StatusBadRequest, "you cannot upload multiple files to the same path '%s' in one upload"+
			" request, only the first specified file was uploaded", path)
	case len(d.done) >= maxFiles:
		return refuse(http.StatusBadRequest, "one upload request may hold %d files: use several", maxFiles)
	}
	err := d.handler.store(path, body, d.in)
	var stored *fault
	switch {
	case err == nil:
	case errors.As(err, &stored):
		return stored
	default:
		return refuse(bodyStatus(err), "%s: %s", reading, err)
	}
	d.seen[path] = true
	d.done = append(d.done, written{
		Name: filepath.Base(path), Path: path, Type: "file", Metadata: d.in.metadata,
	})
	return nil
}

// bodyStatus blames the client for compressed data that is broken; what else goes wrong while a body is read
// has upstream's 500.
func bodyStatus(err error) int {
	var corrupt flate.CorruptInputError
	if errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) || errors.As(err, &corrupt) {
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}
