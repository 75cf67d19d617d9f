package store_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/store/kv"
	"github.com/isthmus/isthmus/store/kv/badger"
)

// counting counts the transactions of an engine.
type counting struct {
	kv.Engine
	updates int
}

func (e *counting) Update(ctx context.Context, fn func(kv.Tx) error) error {
	e.updates++
	return e.Engine.Update(ctx, fn)
}

// A crash must not come between the record and its key: a repeat would be told that the sandbox has ended.
func TestAbandonIsOneTransaction(t *testing.T) {
	engine, err := badger.Open(t.TempDir(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	counted := &counting{Engine: engine}
	s, err := store.Open(t.Context(), counted)
	require.NoError(t, err)
	intent := store.Intent{Key: "key", Sandbox: store.Sandbox{
		ID: "a", TeamID: "team", Pool: "p", BoxID: "box", State: store.StateCreating, CreateKey: "key"}}
	_, err = s.Sandboxes.Begin(t.Context(), intent)
	require.NoError(t, err)
	counted.updates = 0
	require.NoError(t, s.Sandboxes.Abandon(t.Context(), intent.Sandbox))
	require.Equal(t, 1, counted.updates)
	_, err = s.Sandboxes.ByBox(t.Context(), "p", "box")
	require.ErrorIs(t, err, store.ErrNotFound)
	earlier, err := s.Sandboxes.Begin(t.Context(), intent)
	require.NoError(t, err)
	require.Nil(t, earlier, "the key is free")
}
