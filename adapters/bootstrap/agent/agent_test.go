package agent

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestOpen(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte("program"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	files := fstest.MapFS{
		"envd-linux-amd64.gz": {Data: packed.Bytes()},
		"envd-linux-arm64.gz": {Data: []byte("no gzip")},
	}

	r, err := open(files, Envd, "amd64")
	require.NoError(t, err)
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Equal(t, "program", string(text))

	_, err = open(files, Envd, "arm64")
	require.ErrorContains(t, err, "envd for arm64")
	_, err = open(files, Sudo, "amd64")
	require.ErrorIs(t, err, ErrAbsent)
}

func TestABuildWithoutProgramsSaysSo(t *testing.T) {
	_, err := Open("none", "amd64")
	require.ErrorIs(t, err, ErrAbsent)
}
