package bench

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"connectrpc.com/connect"

	"github.com/isthmus/isthmus/envd/filesystem/filesystemconnect"
	"github.com/isthmus/isthmus/envd/process/processconnect"
)

// Target is one way to an envd.
type Target struct {
	// Name is a few words, the same in every figure.
	Name string
	// URL is the base of envd's routes; Client opens the connections; Header is sent with every request.
	URL    string
	Client *http.Client
	Header http.Header
	// Folder is where files may be written, absolute.
	Folder string
	// Processes are the ids of the processes on the way and of envd, whose processor time and memory are told.
	Processes []int
}

// Do sends a request with the target's headers, so that a Target serves generated clients too.
func (t *Target) Do(r *http.Request) (*http.Response, error) {
	for name, values := range t.Header {
		r.Header[name] = values
	}
	return t.Client.Do(r)
}

// Plain is the way to an envd that is a plain process and asks for nothing but a user: root.
func Plain(name, url, folder string, pid int) *Target {
	return &Target{
		Name: name, URL: url, Folder: folder, Processes: []int{pid},
		Client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 512, DisableCompression: true}},
		Header: http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte("root:"))}},
	}
}

// Prepare makes the folders that are written into.
func (t *Target) Prepare(ctx context.Context) error { return t.upload(ctx, "watched/first", 1) }

func (t *Target) process() processconnect.ProcessClient {
	return processconnect.NewProcessClient(t, t.URL, connect.WithProtoJSON())
}

func (t *Target) filesystem() filesystemconnect.FilesystemClient {
	return filesystemconnect.NewFilesystemClient(t, t.URL, connect.WithProtoJSON())
}

// call sends one request and reads its answer to the end without looking at it. It returns the size of the answer.
func (t *Target) call(ctx context.Context, method, path, contentType string, body io.Reader, size int64) (int64, error) {
	r, err := http.NewRequestWithContext(ctx, method, t.URL+path, body)
	if err != nil {
		return 0, err
	}
	if body != nil {
		r.ContentLength = size
		r.Header.Set("Content-Type", contentType)
	}
	r.Header.Set("Accept-Encoding", "identity")
	answer, err := t.Do(r)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", t.Name, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 500))
		return 0, fmt.Errorf("%s: %s %s: %s: %s", t.Name, method, path, answer.Status, text)
	}
	n, err := io.Copy(io.Discard, answer.Body)
	if err != nil {
		return n, fmt.Errorf("%s: %s %s broke off after %d bytes: %w", t.Name, method, path, n, err)
	}
	return n, nil
}

// list is a small unary call.
func (t *Target) list(ctx context.Context) error {
	_, err := t.call(ctx, http.MethodPost, processconnect.ProcessListProcedure, "application/json", strings.NewReader("{}"), 2)
	return err
}

func (t *Target) file(name string) string {
	return "/files?path=" + url.QueryEscape(t.Folder+"/"+name)
}

// upload writes a file of the target's folder.
func (t *Target) upload(ctx context.Context, name string, size int64) error {
	_, err := t.call(ctx, http.MethodPost, t.file(name), "application/octet-stream", io.LimitReader(zeros{}, size), size)
	return err
}

// download reads one.
func (t *Target) download(ctx context.Context, name string, size int64) error {
	n, err := t.call(ctx, http.MethodGet, t.file(name), "", nil, 0)
	if err == nil && n != size {
		err = errors.New("the download has another size than the upload")
	}
	return err
}

// zeros never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
