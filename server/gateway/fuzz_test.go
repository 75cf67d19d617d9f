package gateway

import (
	"net/url"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/envd"
)

// FuzzInternalPath looks for a path that passes the gateway and is an internal route to whoever decodes it once or
// twice and cleans it, as servers do.
func FuzzInternalPath(f *testing.F) {
	for _, text := range []string{"/init", "//init", "/%69nit", "/%2569nit", "/a/../init", "/isthmus/tunnel/1", "/./isthmus", "/a%2f..%2finit", "/init/", "/%", "/files?path=/init"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.ParseRequestURI(text)
		if err != nil || internalPath(u) {
			return
		}
		for _, seen := range []string{u.Path, once(u.Path), once(once(u.Path)), u.EscapedPath()} {
			require.False(t, envd.Internal(path.Clean("/"+seen)), "%q passes and is %q", text, seen)
		}
	})
}

// once decodes a path once more, if it can be.
func once(text string) string {
	if decoded, err := url.PathUnescape(text); err == nil {
		return decoded
	}
	return text
}
