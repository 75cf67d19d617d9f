package images

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhatAKilledBuildLeft is removed by the next build or import of the same store, and nothing else is.
func TestWhatAKilledBuildLeft(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	s, other := newStore(t), newStore(t)
	left, err := s.newWork()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(left, "node.tar"), []byte("x"), 0o600))
	info, err := os.Stat(left)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), info.Mode().Perm(), "another id reads it")
	busy, err := other.newWork()
	require.NoError(t, err)
	prefix, err := s.workPrefix()
	require.NoError(t, err)
	trap := filepath.Join(temp, prefix+"link")
	require.NoError(t, os.Symlink(t.TempDir(), trap))

	folder := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(folder, "bin"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "bin/bash"), nil, 0o755))
	_, err = s.Import(t.Context(), "mine", folder)
	require.NoError(t, err)
	require.NoDirExists(t, left)
	require.DirExists(t, busy, "another store's, which its own lock guards")
	_, err = os.Lstat(trap)
	require.NoError(t, err, "no folder of this user")

	again, err := s.newWork()
	require.NoError(t, err)
	_, err = s.Import(t.Context(), "mine", folder)
	require.NoError(t, err)
	require.NoDirExists(t, again, "also where the image is there already")
}
