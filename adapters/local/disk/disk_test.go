//go:build linux

package disk

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestADiskIsMadeAttachedAndDetached(t *testing.T) {
	images := Images{Dir: filepath.Join(t.TempDir(), "formatted")}
	for i := range 3 {
		path := filepath.Join(t.TempDir(), strconv.Itoa(i))
		require.NoError(t, images.Make(t.Context(), path, 1<<30))
		st, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, int64(1<<30), st.Size())
		require.Less(t, st.Sys().(*syscall.Stat_t).Blocks*512, int64(4<<20), "it is sparse")
		require.Error(t, images.Make(t.Context(), path, 1<<30), "an image is never overwritten")

		d, err := Attach(path)
		require.NoError(t, err)
		name := "/proc/self/fd/" + strconv.Itoa(d.Mount)
		require.NoError(t, os.WriteFile(name+"/file", []byte("text"), 0o600))
		var fs unix.Statfs_t
		require.NoError(t, unix.Fstatfs(d.Mount, &fs))
		require.InDelta(t, 1<<30, int64(fs.Blocks)*fs.Frsize, 64<<20)

		short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		require.Error(t, WaitDetached(short, d.Device, path))
		cancel()
		require.NoError(t, os.Remove(path))
		require.NoError(t, unix.Close(d.Mount))
		require.NoError(t, WaitDetached(t.Context(), d.Device, path))
	}
	entries, err := os.ReadDir(images.Dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

func TestASizeThatCannotBeFormatted(t *testing.T) {
	err := Images{Dir: t.TempDir()}.Make(t.Context(), filepath.Join(t.TempDir(), "disk"), 4096)
	require.ErrorContains(t, err, "mkfs.ext4")
}
