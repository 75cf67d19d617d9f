package badger_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/store/kv"
	"github.com/isthmus/isthmus/store/kv/badger"
)

// A full disk is refusals by name: the process lives, what must be changed can be, and the folder can be opened.
func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to mount a small disk")
	}
	disk := smallDisk(t, 480<<20)
	dir, filler := filepath.Join(disk, "store"), filepath.Join(disk, "filler")
	engine := open(t, dir)
	set := func(key string, size int) error {
		return engine.Update(t.Context(), func(tx kv.Tx) error { return tx.Set(key, bytes.Repeat([]byte{1}, size), 0) })
	}
	require.NoError(t, set("kept", 100))
	fill(t, filler)
	require.True(t, engine.Low())
	for i := range 2000 {
		require.NoError(t, set(fmt.Sprint("small", i), 500), "ordinary records have their place")
	}

	require.NoError(t, engine.Close())
	fill(t, filler)
	for range 3 { // the ballast serves every new start
		engine = open(t, dir)
		require.NoError(t, set("again", 500))
		fill(t, filler)
		require.NoError(t, set("again", 600))
		require.NoError(t, engine.Close())
		fill(t, filler)
	}

	engine = open(t, dir)
	refused := error(nil)
	for i := 0; refused == nil && i < 200_000; i++ {
		if i%100 == 0 {
			fill(t, filler)
		}
		refused = set(fmt.Sprint("much", i), 10<<10)
	}
	require.ErrorIs(t, refused, kv.ErrFull)
	require.NoError(t, os.Remove(filler))
	require.NoError(t, set("room", 100), "it goes on by itself once there is room")
	require.NoError(t, engine.Close())
	engine = open(t, dir)
	require.NoError(t, engine.View(t.Context(), func(r kv.Reader) error {
		for _, key := range []string{"kept", "small1999", "again", "much0", "room"} {
			if _, err := r.Get(key); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
		return nil
	}))
	require.NoError(t, engine.Close())
}

func TestNoRoomToOpen(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to mount a small disk")
	}
	disk := smallDisk(t, 64<<20)
	fill(t, filepath.Join(disk, "filler"))
	_, err := badger.Open(filepath.Join(disk, "store"), slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, kv.ErrFull)
	require.ErrorContains(t, err, "make room there and try again")
	require.NoError(t, os.Remove(filepath.Join(disk, "filler")))
	require.NoError(t, open(t, filepath.Join(disk, "store")).Close())
}

func open(t *testing.T, dir string) *badger.Engine {
	t.Helper()
	engine, err := badger.Open(dir, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return engine
}

// smallDisk mounts an ext4 of its own.
func smallDisk(t *testing.T, size int64) string {
	t.Helper()
	image, dir := filepath.Join(t.TempDir(), "image"), t.TempDir()
	require.NoError(t, os.WriteFile(image, nil, 0o600))
	require.NoError(t, os.Truncate(image, size))
	for _, args := range [][]string{{"mkfs.ext4", "-q", "-F", image}, {"mount", "-o", "loop", image, dir}} {
		out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// fill takes blocks until the disk has no more.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	require.NoError(t, err)
	info, err := f.Stat()
	require.NoError(t, err)
	end := info.Size()
	for _, size := range []int64{16 << 20, 1 << 20, 4 << 10} {
		for err = nil; err == nil; end += size {
			err = unix.Fallocate(int(f.Fd()), 0, end, size)
		}
		end -= size
		require.ErrorIs(t, err, unix.ENOSPC)
	}
	require.NoError(t, f.Close())
}
