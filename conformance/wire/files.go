package wire

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

func fileCases() []Case {
	return []Case{
		{"files/octet-stream there and back", octetStream},
		{"files/multipart keeps folders", multipartUpload},
		{"files/multipart without a file name", multipartBare},
		{"files/gzip there and back", gzipBoth},
		{"files/ranges and conditions", ranges},
		{"files/metadata", fileMetadata},
		{"files/an empty file has a length", emptyFile},
		{"files/signed urls", signedURLs},
		{"files/signed urls without a sandbox id", signedAnywhere},
		{"files/compose", compose},
		{"files/environment of the daemon", environmentOf},
	}
}

// written is what an upload answers for each file.
type written struct {
	Name     string            `json:"name"`
	Path     string            `json:"path"`
	Type     string            `json:"type"`
	Metadata map[string]string `json:"metadata"`
}

// read downloads a file of the subject.
func (s *Suite) read(t T, path string, header http.Header) answer {
	t.Helper()
	c := s.envd("GET", "/files?path="+url.QueryEscape(path), "")
	for name, values := range header {
		c.header[name] = values
	}
	return s.do(t, c)
}

func octetStream(t T, s *Suite) {
	path, remove := s.scratch(t)
	defer remove()
	content := strings.Repeat("\x00\xffä", 50_000)
	c := s.envd("POST", "/files?path="+path+"/new/f.bin", content)
	c.header.Set("Content-Type", "application/octet-stream")
	got := decode[[]written](t, s.expect(t, 200, c).body)
	equal(t, []written{{Name: "f.bin", Path: path + "/new/f.bin", Type: "file"}}, got, "answer")
	back := s.read(t, path+"/new/f.bin", nil)
	that(t, back.status == 200 && string(back.body) == content, "status %d, %d bytes back", back.status, len(back.body))
	equal(t, "inline; filename=f.bin", back.header.Get("Content-Disposition"), "Content-Disposition")
	equal(t, "bytes", back.header.Get("Accept-Ranges"), "Accept-Ranges")
	equal(t, strconv.Itoa(len(content)), back.header.Get("Content-Length"), "Content-Length")
	equal(t, "user", s.stat(t, path+"/new").Owner, "owner of a folder that was made")
}

// form is a multipart body of files, by name, with its content type.
func form(files ...string) (body, contentType string) {
	var text bytes.Buffer
	writer := multipart.NewWriter(&text)
	for i := 0; i+1 < len(files); i += 2 {
		part, _ := writer.CreateFormFile("file", files[i])
		_, _ = io.WriteString(part, files[i+1])
	}
	_ = writer.Close()
	return text.String(), writer.FormDataContentType()
}

// uploadForm is a multipart upload.
func (s *Suite) uploadForm(query string, files ...string) call {
	body, contentType := form(files...)
	c := s.envd("POST", "/files"+query, body)
	c.header.Set("Content-Type", contentType)
	return c
}

func multipartUpload(t T, s *Suite) {
	path, remove := s.scratch(t)
	defer remove()
	got := decode[[]written](t, s.expect(t, 200, s.uploadForm("", path+"/a/b/one", "1", path+"/two", "2")).body)
	equal(t, []written{{Name: "one", Path: path + "/a/b/one", Type: "file"}, {Name: "two", Path: path + "/two", Type: "file"}}, got, "answer")
	got = decode[[]written](t, s.expect(t, 200, s.uploadForm("?path="+path+"/chosen", "ignored", "3")).body)
	equal(t, path+"/chosen", got[0].Path, "the path of the query is stronger than the file name")
	equal(t, "3", string(s.read(t, path+"/chosen", nil).body), "content")
}

func multipartBare(t T, s *Suite) {
	path, remove := s.scratch(t)
	defer remove()
	c := s.envd("POST", "/files?path="+path+"/f", "--b\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nbare\r\n--b--\r\n")
	c.header.Set("Content-Type", "multipart/form-data; boundary=b")
	s.expect(t, 200, c)
	equal(t, "bare", string(s.read(t, path+"/f", nil).body), "content")
}

// packed is a text in gzip.
func packed(text string) string {
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	_, _ = io.WriteString(writer, text)
	_ = writer.Close()
	return out.String()
}

func gzipBoth(t T, s *Suite) {
	path, remove := s.scratch(t)
	defer remove()
	content := strings.Repeat("a text that packs well ", 1000)
	c := s.envd("POST", "/files?path="+path+"/f", packed(content))
	c.header.Set("Content-Type", "application/octet-stream")
	c.header.Set("Content-Encoding", "gzip")
	s.expect(t, 200, c)
	equal(t, strconv.Itoa(len(content)), s.stat(t, path+"/f").Size, "size in the sandbox")
	got := s.read(t, path+"/f", http.Header{"Accept-Encoding": {"gzip, deflate"}})
	equal(t, "gzip", got.header.Get("Content-Encoding"), "Content-Encoding")
	vary := strings.Join(got.header.Values("Vary"), ", ")
	that(t, strings.Contains(vary, "Accept-Encoding"), "Vary: %q", vary)
	reader, err := gzip.NewReader(bytes.NewReader(got.body))
	must(t, err, "unpacking")
	back, err := io.ReadAll(reader)
	must(t, err, "unpacking")
	that(t, string(back) == content, "%d bytes back", len(back))
	plain := s.read(t, path+"/f", http.Header{"Accept-Encoding": {"gzip;q=0, identity"}})
	equal(t, "", plain.header.Get("Content-Encoding"), "Content-Encoding when gzip is refused")
}

func ranges(t T, s *Suite) {
	path, remove := s.scratch(t)
	defer remove()
	s.upload(t, path+"/f", "0123456789")
	got := s.read(t, path+"/f", http.Header{"Range": {"bytes=2-4"}, "Accept-Encoding": {"gzip"}})
	equal(t, "206 234 bytes 2-4/10", fmt.Sprintf("%d %s %s", got.status, got.body, got.header.Get("Content-Range")), "a range")
	got = s.read(t, path+"/f", http.Header{"Range": {"bytes=50-"}})
	equal(t, 416, got.status, "a range outside")
	modified := s.read(t, path+"/f", nil).header.Get("Last-Modified")
	got = s.read(t, path+"/f", http.Header{"If-Modified-Since": {modified}})
	equal(t, 304, got.status, "an unchanged file")
}

func fileMetadata(t T, s *Suite) {
	path, remove := s.scratch(t)
	defer remove()
	c := s.uploadForm("?path="+path+"/f", "f", "x")
	c.header.Set("X-Metadata-Author", "someone")
	c.header.Set("X-Metadata-b", "with = and ;")
	want := map[string]string{"author": "someone", "b": "with = and ;"}
	equal(t, want, decode[[]written](t, s.expect(t, 200, c).body)[0].Metadata, "metadata in the answer")
	equal(t, want, s.stat(t, path+"/f").Metadata, "metadata of Stat")
	s.upload(t, path+"/f", "y")
	equal(t, 0, len(s.stat(t, path+"/f").Metadata), "metadata after an upload without any")
}

func emptyFile(t T, s *Suite) {
	path, remove := s.scratch(t)
	defer remove()
	s.upload(t, path+"/f", "")
	got := s.read(t, path+"/f", nil)
	equal(t, "200 0", fmt.Sprintf("%d %s", got.status, got.header.Get("Content-Length")), "status and Content-Length")
}

// sign is the signature of a file URL. It is worked out here once more, so that the server's own code is not
// measured by itself.
func sign(token, path, operation, user string, expires int64) string {
	text := path + ":" + operation + ":" + user + ":" + token
	if expires != 0 {
		text += ":" + strconv.FormatInt(expires, 10)
	}
	sum := sha256.Sum256([]byte(text))
	return "v1_" + strings.TrimRight(base64.StdEncoding.EncodeToString(sum[:]), "=")
}

// signed is the query of a file URL.
func signed(token, path, operation, user string, expires int64) string {
	query := url.Values{"path": {path}, "signature": {sign(token, path, operation, user, expires)}}
	if user != "" {
		query.Set("username", user)
	}
	if expires != 0 {
		query.Set("signature_expiration", strconv.FormatInt(expires, 10))
	}
	return query.Encode()
}

// withoutToken is a request to the subject's envd without its token.
func (s *Suite) withoutToken(method, path, body string) call {
	c := s.envd(method, path, body)
	c.header.Del("X-Access-Token")
	return c
}

func signedURLs(t T, s *Suite) {
	token := s.subject.EnvdAccessToken
	for _, expires := range []int64{0, time.Now().Unix() + 60} {
		for _, user := range []string{"", "user", "root"} {
			got := s.expect(t, 200, s.withoutToken("GET", "/files?"+signed(token, "/home/user/canary/file", "read", user, expires), ""))
			equal(t, "canary", string(got.body), "content")
		}
	}
	path, remove := s.scratch(t)
	defer remove()
	c := s.withoutToken("POST", "/files?"+signed(token, path+"/f", "write", "root", 0), "up")
	c.header.Set("Content-Type", "application/octet-stream")
	s.expect(t, 200, c)
	equal(t, "root", s.stat(t, path+"/f").Owner, "owner")
}

func signedAnywhere(t T, s *Suite) {
	target := "/files?" + signed(s.subject.EnvdAccessToken, "/home/user/canary/file", "read", "", 0)
	got := s.expect(t, 200, call{method: "GET", path: target, toSandbox: true})
	equal(t, "canary", string(got.body), "content, found by the signature alone")
}

func compose(t T, s *Suite) {
	path, remove := s.scratch(t)
	defer remove()
	s.upload(t, path+"/1", "one ")
	s.upload(t, path+"/2", "two")
	c := s.envd("POST", "/files/compose", encode(map[string]any{"source_paths": []string{path + "/1", path + "/2"}, "destination": path + "/all"}))
	equal(t, written{Name: "all", Path: path + "/all", Type: "file"}, decode[written](t, s.expect(t, 200, c).body), "answer")
	equal(t, "one two", string(s.read(t, path+"/all", nil).body), "content")
	equal(t, 1, len(s.list(t, path, 1)), "entries left: sources are removed")
}

func environmentOf(t T, s *Suite) {
	envs := decode[map[string]string](t, s.expect(t, 200, s.envd("GET", "/envs", "")).body)
	equal(t, s.subject.SandboxID, envs["E2B_SANDBOX_ID"], "E2B_SANDBOX_ID of /envs")
	figures := decode[map[string]any](t, s.expect(t, 200, s.envd("GET", "/metrics", "")).body)
	for _, name := range []string{"ts", "cpu_count", "cpu_used_pct", "mem_total", "mem_used", "disk_used", "disk_total"} {
		that(t, figures[name] != nil, "/metrics has no %s", name)
	}
	health := s.withoutToken("GET", "/health", "")
	that(t, s.do(t, health).status/100 == 2, "/health needs no token")
}
