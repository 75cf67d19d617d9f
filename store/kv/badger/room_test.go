package badger

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The folder is looked through for the next log now and then, and never too little is taken to be in that one.
func TestLooksForTheNextLog(t *testing.T) {
	r := newRoom(t.TempDir(), slog.New(slog.DiscardHandler))
	log := func(number int) {
		require.NoError(t, os.WriteFile(filepath.Join(r.dir, filepath.Base(r.path(number))), []byte("x"), 0o600))
	}
	log(1)
	r.follow()
	require.Equal(t, 1, r.active)
	r.wrote(safeFill)
	log(2)
	r.wrote(1)
	require.Equal(t, 1, r.active, "one look was enough for so little")
	require.EqualValues(t, safeFill+1, r.written)
	r.wrote(lookEvery)
	require.Equal(t, 2, r.active)
	require.EqualValues(t, lookEvery+1, r.written, "all of it may be in the next log")
}
