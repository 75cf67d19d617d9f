//go:build linux

package local_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters/local"
)

func TestLayersAreThoseOfTheBoxes(t *testing.T) {
	c := folder(t)
	used, err := local.Layers(c.DataDir)
	require.NoError(t, err)
	require.Empty(t, used, "no facade has been there yet")
	l, err := local.Open(c)
	require.NoError(t, err)
	t.Cleanup(func() { closed(t, l, c) })
	used, err = local.Layers(c.DataDir)
	require.NoError(t, err)
	require.Empty(t, used, "the probe left nothing")

	id := create(t, l)
	used, err = local.Layers(c.DataDir)
	require.NoError(t, err)
	require.Equal(t, []string{os.Getenv(envRoot)}, used, "the tools on top are no image")

	coming := filepath.Join(c.DataDir, "local/boxes/coming")
	require.NoError(t, os.Mkdir(coming, 0o700))
	_, err = local.Layers(c.DataDir)
	require.Error(t, err, "a box that has no record yet may use any")
	require.NoError(t, os.WriteFile(filepath.Join(coming, "box.json"), []byte(`{"boxID":"coming"}`), 0o600))
	_, err = local.Layers(c.DataDir)
	require.ErrorContains(t, err, "did not write its layers down")
	require.NoError(t, os.RemoveAll(coming))

	require.NoError(t, l.Destroy(t.Context(), id))
	used, err = local.Layers(c.DataDir)
	require.NoError(t, err)
	require.Empty(t, used)
}
