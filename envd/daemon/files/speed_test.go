package files

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/isthmus/isthmus/envd/daemon/filesystem/tree"
	"github.com/isthmus/isthmus/envd/daemon/identity"
)

func BenchmarkUpload(b *testing.B) {
	text := strings.Repeat("x", 1024)
	run(b, func() *http.Request {
		r := httptest.NewRequest(http.MethodPost, RouteFiles+"?path=f", strings.NewReader(text))
		r.Header.Set("Content-Type", "application/octet-stream")
		return r
	})
}

func BenchmarkDownload(b *testing.B) {
	run(b, func() *http.Request { return httptest.NewRequest(http.MethodGet, RouteFiles+"?path=f", nil) })
}

func BenchmarkDownloadGzip(b *testing.B) {
	run(b, func() *http.Request {
		r := httptest.NewRequest(http.MethodGet, RouteFiles+"?path=f", nil)
		r.Header.Set("Accept-Encoding", "gzip, deflate")
		return r
	})
}

func run(b *testing.B, request func() *http.Request) {
	root := b.TempDir()
	_ = os.Mkdir(filepath.Join(root, "etc"), 0o755)
	_ = os.WriteFile(filepath.Join(root, "etc/passwd"), []byte("user:x:1:1::"+root+":/bin/sh\n"), 0o644)
	_ = os.WriteFile(filepath.Join(root, "f"), make([]byte, 1024), 0o644)
	users := identity.NewResolver(identity.NewDirectory(root), "user", "")
	h := New(users, tree.New(users), func() string { return "" })
	for b.Loop() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request())
		if w.Code != http.StatusOK {
			b.Fatal(w.Body)
		}
	}
}
