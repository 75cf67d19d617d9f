package files

import (
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mime/multipart"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/envd/daemon/filesystem/tree"
	"github.com/isthmus/isthmus/envd/daemon/identity"
)

// FuzzForm uploads whatever calls itself a form. The query says where to, so that nothing is written elsewhere.
func FuzzForm(f *testing.F) {
	const boundary = "multipart/form-data; boundary=b"
	f.Add(boundary, "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\ntext\r\n--b--\r\n", "")
	f.Add(boundary, "--b\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n--b\r\n\r\n--b--", "")
	f.Add(boundary, "--b\r\nContent-Disposition: form-data; name=\"other\"\r\n\r\n--b--", "gzip")
	f.Add("multipart/form-data", "--b", "")
	f.Add("multipart/mixed; boundary=\"\"", "", "identity")
	f.Add("application/octet-stream", "\x1f\x8b\x08\x00", "gzip")
	root := f.TempDir()
	home := filepath.Join(root, "home")
	require.NoError(f, os.MkdirAll(filepath.Join(root, "etc"), 0o755))
	require.NoError(f, os.WriteFile(filepath.Join(root, "etc/passwd"), []byte("user:x:1:1::"+home+":/bin/sh\n"), 0o644))
	users := identity.NewResolver(identity.NewDirectory(root), "user", "")
	h := New(users, tree.New(users), func() string { return "" })
	f.Fuzz(func(t *testing.T, contentType, body, encoding string) {
		r := httptest.NewRequest(http.MethodPost, RouteFiles+"?path=f", strings.NewReader(body))
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Content-Encoding", encoding)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Contains(t, []int{http.StatusOK, http.StatusBadRequest, http.StatusInternalServerError}, w.Code, w.Body.String())
		entries, err := os.ReadDir(root)
		require.NoError(t, err)
		for _, entry := range entries {
			require.Contains(t, []string{"etc", "home"}, entry.Name(), "nothing is written beside the home")
		}
	})
}

// FuzzPartName reads where a part of a form goes.
func FuzzPartName(f *testing.F) {
	for _, text := range []string{`form-data; name="file"; filename="a/b"`, `form-data; filename*=UTF-8''%2e%2e%2fa`, `form-data; filename=`, `;`, `form-data; filename="\"` + "\x00" + `"`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, disposition string) {
		d := &delivery{}
		part := &multipart.Part{Header: textproto.MIMEHeader{"Content-Disposition": {disposition}}}
		name, err := d.target(part)
		if err != nil {
			require.Empty(t, name)
		}
	})
}
