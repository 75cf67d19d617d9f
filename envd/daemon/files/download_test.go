package files

import (
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/envd/signature"
)

func TestDownload(t *testing.T) {
	b := start(t)
	b.write("hello.txt", "hello")
	b.write("empty", "")
	b.write("grüße", "hi")
	moment := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	require.NoError(t, os.Chtimes(b.at("hello.txt"), moment, moment))

	res := b.get("hello.txt")
	require.Equal(t, 200, res.StatusCode)
	require.Equal(t, "hello", res.body)
	res.Header.Del("Date")
	require.Equal(t, http.Header{
		"Content-Disposition": {"inline; filename=hello.txt"}, "Content-Type": {"text/plain; charset=utf-8"},
		"Last-Modified": {"Fri, 02 Jan 2026 03:04:05 GMT"}, "Accept-Ranges": {"bytes"}, "Content-Length": {"5"},
		"Vary": {"Accept-Encoding"},
	}, res.Header)

	res = b.get("hello.txt", "Accept-Encoding", "gzip, deflate")
	require.Equal(t, "hello", unzip(t, res.body))
	res.Header.Del("Date")
	require.Equal(t, http.Header{
		"Content-Disposition": {"inline; filename=hello.txt"}, "Content-Type": {"text/plain; charset=utf-8"},
		"Content-Encoding": {"gzip"}, "Content-Length": {strconv.Itoa(len(res.body))}, "Vary": {"Accept-Encoding"},
	}, res.Header)

	res = b.get("empty")
	require.Equal(t, "0", res.Header.Get("Content-Length"))
	res = b.get("grüße", "Accept-Encoding", "gzip")
	require.Equal(t, "inline; filename*=utf-8''gr%C3%BC%C3%9Fe", res.Header.Get("Content-Disposition"))
	require.Equal(t, "application/octet-stream", res.Header.Get("Content-Type"))

	res = b.get("hello.txt", "Range", "bytes=1-2", "Accept-Encoding", "gzip")
	require.Equal(t, 206, res.StatusCode)
	require.Equal(t, "el", res.body)
	res = b.get("hello.txt", "If-Modified-Since", "Fri, 02 Jan 2026 03:04:05 GMT", "Accept-Encoding", "gzip")
	require.Equal(t, 304, res.StatusCode)
	res = b.get("hello.txt", "Range", "bytes=9-")
	require.Equal(t, 416, res.StatusCode)
	require.Contains(t, res.body, "invalid range: failed to overlap")
}

func TestDownloadRefuses(t *testing.T) {
	b := start(t)
	b.write("file", "x")
	require.NoError(t, os.Symlink("nowhere", b.at("broken")))
	require.NoError(t, unix.Mkfifo(b.at("fifo"), 0o644))
	tests := []struct {
		name    string
		query   string
		headers []string
		status  int
		message string
	}{
		{"missing", "path=none", nil, 404, "path '" + b.at("none") + "' does not exist"},
		{"broken link", "path=broken", nil, 404, "path '" + b.at("broken") + "' does not exist"},
		{"below a file", "path=file/x", nil, 404, "path '" + b.at("file/x") + "' does not exist"},
		{"folder", "path=" + b.home, nil, 400, "path '" + b.home + "' is a directory"},
		{"no path", "", nil, 400, "path '" + b.home + "' is a directory"},
		{"FIFO", "path=fifo", nil, 400, "path '" + b.at("fifo") + "' is not a regular file"},
		{"other home", "path=~root/x", nil, 400, "error expanding and resolving path '~root/x': "},
		{"unknown user", "path=file&username=nobody", nil, 401, "error looking up user 'nobody': user: unknown user nobody"},
		{"empty user", "path=file&username=", nil, 401, "error looking up user '': user: unknown user "},
		{"user before path", "path=~x&username=nobody", nil, 401, "error looking up user"},
		{"the daemon", "path=/proc/self/environ", nil, 400, "refused"},
		{"no coding", "path=file", []string{"Accept-Encoding", "identity;q=0"}, 406,
			"error parsing Accept-Encoding: no acceptable encoding found, supported: [gzip]"},
		{"no identity for a range", "path=file", []string{"Accept-Encoding", "gzip, *;q=0", "Range", "bytes=0-"}, 406,
			"identity encoding not acceptable for Range or conditional request"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			query, err := url.ParseQuery(test.query)
			require.NoError(t, err)
			res := b.do(http.MethodGet, RouteFiles, query, nil, test.headers...)
			require.Equal(t, test.status, res.StatusCode, res.body)
			require.Contains(t, res.message(t), test.message)
		})
	}
	for _, method := range []string{http.MethodPut, http.MethodHead, http.MethodDelete} {
		res := b.do(method, RouteFiles, nil, nil)
		require.Equal(t, 405, res.StatusCode)
		require.Equal(t, []string{"GET", "POST"}, res.Header.Values("Allow"))
	}
}

func TestDownloadFromTheKernel(t *testing.T) {
	b := start(t)
	want, err := os.ReadFile("/proc/sys/kernel/ostype")
	require.NoError(t, err)
	require.Equal(t, string(want), b.get("/proc/sys/kernel/ostype").body)
	require.Equal(t, string(want), unzip(t, b.get("/proc/sys/kernel/ostype", "Accept-Encoding", "gzip").body))
}

func TestDownloadLarge(t *testing.T) {
	b := start(t)
	text := strings.Repeat("0123456789abcdef", 1<<16)
	b.write("large", text)
	require.Equal(t, text, b.get("large").body)
	require.Equal(t, text, unzip(t, b.get("large", "Accept-Encoding", "gzip").body))
}

func TestAcceptable(t *testing.T) {
	tests := []struct{ accept, want string }{
		{"", "identity"},
		{"gzip", "gzip"},
		{"GZIP", "gzip"},
		{"gzip, deflate", "gzip"},
		{"gzip;q=0.5, identity", "identity"},
		{"gzip;q=0.5, identity;q=0.2", "gzip"},
		{"deflate, br", "identity"},
		{"br, gzip;q=0.1", "gzip"},
		{"gzip;q=0", "identity"},
		{"*", "identity"},
		{"*, identity;q=0", "gzip"},
		{"*;q=0", "none"},
		{"*;q=0, identity", "identity"},
		{"br, identity;q=0", "none"},
		{"gzip;q=x", "identity"},
	}
	for _, test := range tests {
		t.Run(test.accept, func(t *testing.T) {
			got, err := acceptable(http.Header{"Accept-Encoding": {test.accept}})
			if test.want == "none" {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

func TestSignatures(t *testing.T) {
	b := start(t)
	b.token = "secret"
	b.write("hello.txt", "hello")
	sign := func(operation signature.Operation, user string, end *int64, token string) url.Values {
		claim := signature.Claim{Path: "hello.txt", User: user, Operation: operation, Expiration: end}
		query := url.Values{"path": {"hello.txt"}, "signature": {claim.Sign(token)}}
		if user != "" {
			query.Set("username", user)
		}
		if end != nil {
			query.Set("signature_expiration", strconv.FormatInt(*end, 10))
		}
		return query
	}
	future := time.Now().Add(time.Hour).Unix()
	right := []string{"X-Access-Token", "secret"}
	wrong := []string{"X-Access-Token", "other"}
	tests := []struct {
		name    string
		query   url.Values
		headers []string
		status  int
		message string
	}{
		{"header", url.Values{"path": {"hello.txt"}}, right, 200, ""},
		{"signature", sign(signature.Read, "", nil, "secret"), nil, 200, ""},
		{"neither", url.Values{"path": {"hello.txt"}}, nil, 401, "missing signature query parameter"},
		{"wrong header, right signature", sign(signature.Read, "", nil, "secret"), wrong, 401,
			"access token present in header but does not match"},
		{"not expired", sign(signature.Read, "root", &future, "secret"), nil, 404, ""},
		{"other token", sign(signature.Read, "", nil, "other"), nil, 401, "invalid signature"},
		{"signed to write", sign(signature.Write, "", nil, "secret"), nil, 401, "invalid signature"},
		{"signature before user", url.Values{"path": {"hello.txt"}, "username": {"nobody"}}, nil, 401, "missing signature"},
		{"unknown user", sign(signature.Read, "nobody", nil, "secret"), nil, 401, "error looking up user"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			res := b.do(http.MethodGet, RouteFiles, test.query, nil, test.headers...)
			require.Equal(t, test.status, res.StatusCode, res.body)
			if test.message != "" {
				require.Contains(t, res.message(t), test.message)
			}
		})
	}
	claim := signature.Claim{Path: "hello.txt", Operation: signature.Read, Expiration: new(int64)}
	query := url.Values{"path": {"hello.txt"}, "signature": {claim.Sign("secret")}, "signature_expiration": {"0"}}
	res := b.do(http.MethodGet, RouteFiles, query, nil)
	require.Equal(t, 401, res.StatusCode)
	require.JSONEq(t, `{"code":401,"message":"signature is already expired"}`, res.body)
	query.Set("signature_expiration", "soon")
	res = b.do(http.MethodGet, RouteFiles, query, nil)
	require.Equal(t, 400, res.StatusCode)
	require.Equal(t, "text/plain; charset=utf-8", res.Header.Get("Content-Type"))
	require.Contains(t, res.body, "Invalid format for parameter signature_expiration: ")
}
