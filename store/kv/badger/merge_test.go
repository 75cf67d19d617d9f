package badger

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/store/kv"
)

// Badger has no compactors here, so what is written again and again must be merged by Run.
func TestRunMergesTables(t *testing.T) {
	engine, err := Open(t.TempDir(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = engine.Run(ctx) })
	value := make([]byte, 512<<10)
	for n := range (fewTables + 1) * tableSize / len(value) {
		_, _ = rand.Read(value)
		require.NoError(t, engine.Update(t.Context(), func(tx kv.Tx) error { return tx.Set(fmt.Sprint("key", n%8), value, 0) }))
	}
	require.Eventually(t, func() bool {
		levels := engine.db.Levels()
		return levels[0].NumTables < fewTables && levels[len(levels)-1].NumTables > 0
	}, time.Minute, 10*time.Millisecond)
	stop()
	running.Wait()
	require.NoError(t, engine.View(t.Context(), func(r kv.Reader) error {
		kept, err := r.Get("key7")
		require.Equal(t, len(value), len(kept))
		return err
	}))
	require.NoError(t, engine.Close())
}
