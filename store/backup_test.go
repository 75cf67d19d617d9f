package store

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestABackupIsWholeOrRefused(t *testing.T) {
	var file bytes.Buffer
	w, err := Seal(&file)
	require.NoError(t, err)
	_, err = io.WriteString(w, "the engine's stream")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	whole := file.Bytes()

	stream, err := Unseal(bytes.NewReader(whole), int64(len(whole)))
	require.NoError(t, err)
	got, err := io.ReadAll(stream)
	require.NoError(t, err)
	require.Equal(t, "the engine's stream", string(got))

	for size := range whole {
		_, err := Unseal(bytes.NewReader(whole[:size]), int64(size))
		require.ErrorIs(t, err, ErrNotABackup, "cut to %d bytes", size)
		changed := bytes.Clone(whole)
		changed[size] ^= 1
		_, err = Unseal(bytes.NewReader(changed), int64(len(changed)))
		require.ErrorIs(t, err, ErrNotABackup, "byte %d changed", size)
	}
	longer := append(bytes.Clone(whole), 'x')
	_, err = Unseal(bytes.NewReader(longer), int64(len(longer)))
	require.ErrorIs(t, err, ErrNotABackup)
}
