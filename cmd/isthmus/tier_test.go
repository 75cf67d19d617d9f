package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/server/config"
	"github.com/isthmus/isthmus/server/fleet"
)

func TestNoIsolationAsRootIsAskedForTwice(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("is about root")
	}
	c := config.Default()
	c.Data, c.Local.Isolation = t.TempDir(), "process"
	secrets, err := fleet.LoadSecrets(filepath.Join(c.Data, "key"))
	require.NoError(t, err)
	_, err = openLocal(c, config.Pool{Name: localPool}, secrets, nil)
	require.ErrorContains(t, err, "--process-as-root")
}

func TestWeakTiersAreNamedAtTheStart(t *testing.T) {
	for _, c := range []struct {
		d    adapters.Description
		want string
	}{
		{adapters.Description{Tier: "none", Weak: true, Unenforced: []string{"disk"}}, "SANDBOXES ARE NOT ISOLATED"},
		{adapters.Description{Tier: "user", Unenforced: []string{"disk", "cpu"}}, "not_enforced=disk,cpu"},
		{adapters.Description{Tier: "root"}, ""},
	} {
		var out bytes.Buffer
		warnOfTier(c.d, logger(&out, false))
		if c.want == "" {
			require.Empty(t, out.String())
			continue
		}
		require.Contains(t, out.String(), "level=WARN")
		require.Contains(t, out.String(), c.want)
	}
}

func TestTheDataFolderBecomesPrivate(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	d, err := openData(t.Context(), dir, logger(&bytes.Buffer{}, false))
	require.NoError(t, err)
	require.NoError(t, d.close())
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	require.NoError(t, os.Chmod(dir, 0o755))
	_, err = isthmus(t, "images", "list", "--data", dir)
	require.NoError(t, err)
	info, err = os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), "images come first on a new machine")
}

func TestDoctorAsksForRoom(t *testing.T) {
	c := config.Default()
	c.Data, c.Limits.KeepFreeMB = t.TempDir(), 1<<40
	require.Contains(t, dataFolder(t.Context(), c).String(), "MISSING")
	require.Contains(t, dataFolder(t.Context(), c).String(), "limits.keep_free_mb")
}
