//go:build linux

package local

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestACeilingIsRaisedNeverLowered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ceiling")
	for _, c := range []struct {
		now   string
		least int64
		want  string
	}{
		{"4096\n", 5000, "5000"},
		{"6000\n", 5000, "6000\n"},
		{"9223372036854775807\n", math.MaxInt64, "9223372036854775807\n"},
	} {
		require.NoError(t, os.WriteFile(path, []byte(c.now), 0o600))
		require.NoError(t, raise(path, c.least))
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, c.want, string(text))
	}
	require.Error(t, raise(filepath.Join(t.TempDir(), "none"), 1))
}
