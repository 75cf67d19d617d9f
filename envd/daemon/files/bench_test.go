package files

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/envd/daemon/filesystem/tree"
	"github.com/isthmus/isthmus/envd/daemon/identity"
)

const uid, gid = 12345, 23456

// bench is a served handler with a user whose home is a temporary folder.
type bench struct {
	*testing.T
	url   string
	home  string
	users *identity.Resolver
	token string
}

func start(t *testing.T) *bench {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	b := &bench{T: t, home: filepath.Join(root, "home")}
	require.NoError(t, os.Mkdir(b.home, 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(root, "etc"), 0o755))
	passwd := "root:x:0:0::" + b.home + "/root:/bin/sh\nuser:x:12345:23456::" + b.home + ":/bin/bash\n"
	require.NoError(t, os.WriteFile(filepath.Join(root, "etc/passwd"), []byte(passwd), 0o644))
	b.users = identity.NewResolver(identity.NewDirectory(root), "user", "")
	server := httptest.NewServer(New(b.users, tree.New(b.users), func() string { return b.token }))
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

func (b *bench) at(name string) string { return filepath.Join(b.home, name) }

func (b *bench) write(name, text string) {
	require.NoError(b, os.MkdirAll(filepath.Dir(b.at(name)), 0o755))
	require.NoError(b, os.WriteFile(b.at(name), []byte(text), 0o644))
}

func (b *bench) read(name string) string {
	text, err := os.ReadFile(b.at(name))
	require.NoError(b, err)
	return string(text)
}

// result is an answer with its body as it came over the wire.
type result struct {
	*http.Response
	body string
}

// message is what an error says.
func (r result) message(t *testing.T) string {
	require.Equal(t, "application/json; charset=utf-8", r.Header.Get("Content-Type"), r.body)
	require.Equal(t, "nosniff", r.Header.Get("X-Content-Type-Options"))
	var fault map[string]any
	require.NoError(t, json.Unmarshal([]byte(r.body), &fault), r.body)
	require.Len(t, fault, 2)
	require.EqualValues(t, r.StatusCode, fault["code"])
	return fault["message"].(string)
}

func (b *bench) do(method, path string, query url.Values, body io.Reader, headers ...string) result {
	req, err := http.NewRequest(method, b.url+path+"?"+query.Encode(), body)
	require.NoError(b, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	// Compression is left to the test.
	client := http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}
	res, err := client.Do(req)
	require.NoError(b, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(b, err)
	return result{res, string(text)}
}

func (b *bench) get(path string, headers ...string) result {
	return b.do(http.MethodGet, RouteFiles, url.Values{"path": {path}}, nil, headers...)
}

// put uploads by octet-stream.
func (b *bench) put(path, text string, headers ...string) result {
	headers = append([]string{"Content-Type", "application/octet-stream"}, headers...)
	return b.do(http.MethodPost, RouteFiles, url.Values{"path": {path}}, strings.NewReader(text), headers...)
}

// part is one part of a form; an empty file name means that there is none.
type part struct{ field, name, text string }

func form(t *testing.T, parts ...part) (contentType string, body *bytes.Buffer) {
	body = &bytes.Buffer{}
	w := multipart.NewWriter(body)
	for _, p := range parts {
		disposition := `form-data; name="` + p.field + `"`
		if p.name != "" {
			disposition += `; filename="` + p.name + `"`
		}
		out, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {disposition}})
		require.NoError(t, err)
		_, err = io.WriteString(out, p.text)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return w.FormDataContentType(), body
}

func (b *bench) post(query url.Values, parts ...part) result {
	contentType, body := form(b.T, parts...)
	return b.do(http.MethodPost, RouteFiles, query, body, "Content-Type", contentType)
}

func zip(t *testing.T, text string) string {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return packed.String()
}

func unzip(t *testing.T, packed string) string {
	r, err := gzip.NewReader(strings.NewReader(packed))
	require.NoError(t, err)
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(text)
}
