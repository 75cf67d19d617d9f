package daytona

import (
	"encoding/json"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"path"
	"strconv"
	"strings"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// content opens a file that the sandbox's user may read.
func (c *toolCall) content(name string) (io.ReadCloser, int64, error) {
	out, err := c.must(`[ -e "$1" ] || exit 44; [ -r "$1" ] || exit 43; [ ! -d "$1" ] || { echo "path is a directory"; exit 1; }; stat -L -c %s "$1"`, name)
	if err != nil {
		return nil, 0, err
	}
	bytes, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
	if err != nil {
		return nil, 0, err
	}
	file, err := c.box.Read(c.Context(), name)
	if err != nil {
		return nil, 0, ofDaemon(http.StatusNotFound, "FILE_NOT_FOUND", "file not found: "+name)
	}
	return file, bytes, nil
}

func downloadFile(w http.ResponseWriter, c *toolCall) error {
	name := c.absolute(c.URL.Query().Get("path"))
	file, bytes, err := c.content(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", "attachment; filename="+path.Base(name))
	w.Header().Set("Content-Length", strconv.FormatInt(bytes, 10))
	_, _ = io.Copy(w, file)
	return nil
}

// bulkDownload answers a part for each path: the file with its length, or an error that says why there is none.
func bulkDownload(w http.ResponseWriter, c *toolCall) error {
	var body struct {
		Paths []string `json:"paths"`
	}
	if err := read(c.Request, &body); err != nil {
		return err
	}
	if len(body.Paths) == 0 {
		return ofDaemon(http.StatusBadRequest, "BAD_REQUEST", "paths cannot be empty")
	}
	parts := multipart.NewWriter(w)
	w.Header().Set("Content-Type", parts.FormDataContentType())
	for _, name := range body.Paths {
		if err := c.part(parts, name); err != nil {
			return nil //nolint:nilerr // the client has left
		}
	}
	_ = parts.Close()
	return nil
}

// part writes one of the parts.
func (c *toolCall) part(parts *multipart.Writer, name string) error {
	header := func(field, kind string, length int64) textproto.MIMEHeader {
		return textproto.MIMEHeader{
			"Content-Disposition": {`form-data; name="` + field + `"; filename="` + strings.ReplaceAll(name, `"`, `\"`) + `"`},
			"Content-Type":        {kind}, "Content-Length": {strconv.FormatInt(length, 10)},
		}
	}
	file, bytes, err := c.content(c.absolute(name))
	if err != nil {
		var f *failure
		if !errors.As(err, &f) {
			f = ofDaemon(http.StatusInternalServerError, "FILE_READ_FAILED", err.Error())
		}
		text, err := json.Marshal(map[string]any{"message": f.Message, "statusCode": f.Status, "code": f.Code, "source": "DAYTONA_DAEMON"})
		if err != nil {
			return err
		}
		part, err := parts.CreatePart(header("error", "application/json", int64(len(text))))
		if err == nil {
			_, err = part.Write(text)
		}
		return err
	}
	defer func() { _ = file.Close() }()
	part, err := parts.CreatePart(header("file", "application/octet-stream", bytes))
	if err == nil {
		_, err = io.CopyN(part, file, bytes)
	}
	return err
}

// bulkUpload writes files: for each of them the part files[i].path and, after it, files[i].file.
func bulkUpload(c *toolCall) (reply, error) {
	parts, err := c.MultipartReader()
	if err != nil {
		return reply{}, ofDaemon(http.StatusBadRequest, "BAD_REQUEST", "invalid multipart form")
	}
	paths := map[string]string{}
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return reply{status: http.StatusOK}, nil
		}
		if err != nil {
			return reply{}, ofDaemon(http.StatusBadRequest, "BAD_REQUEST", err.Error())
		}
		index, field, _ := strings.Cut(strings.TrimPrefix(part.FormName(), "files["), "].")
		switch field {
		case "path":
			text, err := io.ReadAll(io.LimitReader(part, maxBody))
			if err != nil {
				return reply{}, err
			}
			paths[index] = string(text)
		case "file":
			if paths[index] == "" {
				return reply{}, ofDaemon(http.StatusBadRequest, "BAD_REQUEST", "file["+index+"]: missing .path metadata")
			}
			if err := c.save(paths[index], part); err != nil {
				return reply{}, err
			}
		}
	}
}

func uploadFile(c *toolCall) (reply, error) {
	name := c.URL.Query().Get("path")
	parts, err := c.MultipartReader()
	if err != nil || name == "" {
		return reply{}, ofDaemon(http.StatusBadRequest, "BAD_REQUEST", "path and a multipart form are needed")
	}
	part, err := parts.NextPart()
	if err != nil {
		return reply{}, ofDaemon(http.StatusBadRequest, "BAD_REQUEST", err.Error())
	}
	return reply{status: http.StatusOK}, c.save(name, part)
}

// save writes a file and gives it to the sandbox's user.
func (c *toolCall) save(name string, content io.Reader) error {
	const mode = 0o644
	name = c.absolute(name)
	if _, err := c.must(`mkdir -p "$2" 2>&1 && [ -w "$2" ] || exit 43`, name, path.Dir(name)); err != nil {
		return err
	}
	if err := c.box.Write(c.Context(), name, mode, content); err != nil {
		return ofDaemon(http.StatusBadRequest, "BAD_REQUEST", err.Error())
	}
	if c.sb.facts.User == "root" {
		return nil
	}
	code, _, err := run(c.Context(), c.box, machine.Command{Argv: []string{"/bin/sh", "-c", `chown "$0:" "$1"`, c.sb.facts.User, name}})
	if err == nil && code != 0 {
		err = ofDaemon(http.StatusForbidden, "FILE_ACCESS_DENIED", "permission denied: "+name)
	}
	return err
}
