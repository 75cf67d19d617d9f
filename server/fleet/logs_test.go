package fleet

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/store/kv"
	"github.com/isthmus/isthmus/store/kv/badger"
)

// noted puts entries into the journal of a box.
func (b *bench) noted(id string, entries int, message string) {
	b.provider.with(func(p *fake) {
		for n := range entries {
			p.boxes[id].journal = append(p.boxes[id].journal, envd.JournalEntry{Number: uint64(n + 1), Time: time.Now(), Level: "info", Message: message})
		}
	})
}

func TestAPageOfLongEntriesIsRead(t *testing.T) {
	b := start(t, func(c *Config) { c.Timing.Sample = time.Hour })
	sb := b.create(request())
	b.provider.with(func(p *fake) { p.page = 1000 })
	b.noted(sb.ID, 1000, strings.Repeat("\x01", 64<<10))
	b.fleet.collect(t.Context(), b.fleet.homes.get(sb.ID), time.Minute)
	read, err := b.store.Logs.JournalRead(t.Context(), sb.ID)
	require.NoError(t, err)
	require.EqualValues(t, 1000, read)
}

// low is an engine on a disk that is almost full.
type low struct{ kv.Engine }

func (low) Low() bool { return true }

func TestCollectingStopsWhenNothingIsWritten(t *testing.T) {
	engine, err := badger.Open(t.TempDir(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	full, err := store.Open(t.Context(), low{engine})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	b := start(t, func(c *Config) { c.Timing.Sample = time.Hour })
	sb := b.create(request())
	b.noted(sb.ID, 5, "one")
	b.provider.with(func(p *fake) { p.reads = 0 })
	f := &Fleet{store: full, log: b.fleet.log}
	f.collect(context.Background(), b.fleet.homes.get(sb.ID), time.Minute)
	b.provider.with(func(p *fake) { require.Equal(t, 1, p.reads) })
}
