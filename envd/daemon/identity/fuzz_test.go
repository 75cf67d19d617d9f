package identity

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzExpand holds every path against what it means: absolute ones stay as they are, all others lie below the home,
// or are refused because only a shell could expand them.
func FuzzExpand(f *testing.F) {
	for _, text := range []string{"", "/", "a", "~", "~/a", "~root/a", "../../etc/passwd", "/a/../b", "~\\a", "./~", "a\x00b", "//a", "~//a"} {
		f.Add(text, "")
		f.Add(text, "/work")
	}
	user := User{Name: "user", Home: "/home/user"}
	f.Fuzz(func(t *testing.T, text, workdir string) {
		got, err := user.Expand(text, workdir)
		if err != nil {
			require.ErrorIs(t, err, errOtherHome)
			return
		}
		asked := text
		if asked == "" {
			asked = workdir
		}
		if strings.HasPrefix(asked, "/") {
			require.Equal(t, asked, got)
			return
		}
		require.True(t, filepath.IsAbs(got), "%q became %q", text, got)
		require.Equal(t, filepath.Clean(got), got)
	})
}
