package provider

import (
	"bytes"
	"context"
	"io"
	"mime/multipart"
	"net/http"
	neturl "net/url"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd/filesystem"
	"github.com/isthmus/isthmus/envd/filesystem/filesystemconnect"
)

// files goes through what can be done to files, but for what the provider says that it cannot.
func files(t T, s *Suite) {
	spec, done := s.create(t)
	defer done()
	in := s.reach(t, spec.BoxID)
	defer in.close()
	ctx, folder, content := t.Context(), "/tmp", []byte("written\n\x00\xff")
	if s.canDo(adapters.FeatureFileParents) {
		folder = "/tmp/conformance/above/below"
	}
	path := folder + "/file"
	if s.canDo(adapters.FeatureFileWrite) {
		equal(t, http.StatusOK, in.upload(ctx, t, path, content), "write a file")
	}
	if s.canDo(adapters.FeatureFileAppend) {
		s.runs(t, spec.BoxID, "printf more >>"+path, result{})
		content = append(content, "more"...)
	}
	if s.canDo(adapters.FeatureFileRead) {
		status, got := in.download(ctx, t, path)
		equal(t, http.StatusOK, status, "read the file")
		equal(t, string(content), got, "what was written")
	}
	client := filesystemconnect.NewFilesystemClient(&http.Client{Transport: in}, in.base)
	if s.canDo(adapters.FeatureFileList) {
		list, err := client.ListDir(ctx, asRoot(&filesystem.ListDirRequest{Path: folder, Depth: 1}))
		must(t, err, "list the folder")
		found := 0
		for _, entry := range list.Msg.GetEntries() {
			if entry.GetName() == "file" {
				found++
			}
		}
		equal(t, 1, found, "the file in its folder")
	}
	if s.canDo(adapters.FeatureFileDelete) {
		_, err := client.Remove(ctx, asRoot(&filesystem.RemoveRequest{Path: path}))
		must(t, err, "delete the file")
		status, _ := in.download(ctx, t, path)
		equal(t, http.StatusNotFound, status, "read the file that was deleted")
	}
}

// canDo reports whether a detail of files is promised: it is where the provider does not say otherwise.
func (s *Suite) canDo(detail adapters.Feature) bool {
	value := s.can.Value(detail)
	return value == "" || value == adapters.Yes
}

// upload writes a file as root and returns the status.
func (in *inside) upload(ctx context.Context, t T, path string, content []byte) int {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", path)
	must(t, err, "make a form")
	_, err = part.Write(content)
	must(t, err, "make a form")
	must(t, form.Close(), "make a form")
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, in.file(path), &body)
	must(t, err, "make a request")
	request.Header.Set("Content-Type", form.FormDataContentType())
	response, err := in.RoundTrip(request)
	must(t, err, "write a file")
	_, err = io.Copy(io.Discard, response.Body)
	must(t, err, "write a file")
	must(t, response.Body.Close(), "write a file")
	return response.StatusCode
}

// download reads a file as root.
func (in *inside) download(ctx context.Context, t T, path string) (status int, content string) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, in.file(path), nil)
	must(t, err, "make a request")
	response, err := in.RoundTrip(request)
	must(t, err, "read a file")
	text, err := io.ReadAll(response.Body)
	must(t, err, "read a file")
	must(t, response.Body.Close(), "read a file")
	return response.StatusCode, string(text)
}

// file is the address of a file.
func (in *inside) file(path string) string {
	return in.base + "/files?" + neturl.Values{"path": {path}, "username": {"root"}}.Encode()
}
