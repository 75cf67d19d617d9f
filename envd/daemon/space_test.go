package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSpaceCountsFilesAndRemembersForAWhile(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "a", "b"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "a", "b", "file"), make([]byte, 1<<20), 0o644))
	var s space
	used := s.count(root)
	require.GreaterOrEqual(t, used, uint64(1<<20))
	require.Less(t, used, uint64(2<<20))
	require.NoError(t, os.WriteFile(filepath.Join(root, "more"), make([]byte, 1<<20), 0o644))
	require.Equal(t, used, s.count(root), "it was counted a moment ago")
}
