package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/translate/placement"
)

// A pause that comes about after its outcome was given up keeps what it was asked to keep. What stops a box long after
// it, or after a pause that surely came to nothing, is its place, which keeps the files.
func TestALatePauseKeepsWhatWasAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		answer adapters.Kind
		ago    time.Duration
		want   adapters.Level
	}{
		"the outcome was not known": {adapters.KindUnknownOutcome, 0, adapters.LevelMemory},
		"it was long ago":           {adapters.KindUnknownOutcome, 24 * time.Hour, adapters.LevelFilesystem},
		"it came to nothing":        {adapters.KindUnavailable, 0, adapters.LevelFilesystem},
	} {
		t.Run(name, func(t *testing.T) {
			b := able(t, adapters.LevelMemory, nil)
			sb := b.create(request())
			b.provider.with(func(p *fake) {
				p.onPower = func(string, string) error { return adapters.Errorf(c.answer, "no") }
			})
			requireKind(t, c.answer, b.fleet.Pause(t.Context(), "team", sb.ID, placement.Pause{}))
			require.Equal(t, store.StateRunning, b.state(sb.ID))
			_, err := b.store.Sandboxes.Change(t.Context(), sb.ID, func(record *store.Sandbox) error {
				record.PauseTriedAt = record.PauseTriedAt.Add(-c.ago)
				return nil
			})
			require.NoError(t, err)
			b.provider.with(func(p *fake) { p.onPower, p.boxes[sb.ID].Paused = nil, true })
			b.fleet.Reconcile(t.Context())
			b.becomes(sb.ID, store.StatePaused)
			paused, err := b.fleet.Sandbox(t.Context(), "team", sb.ID)
			require.NoError(t, err)
			require.Equal(t, string(c.want), paused.PauseLevel)
			require.Empty(t, paused.PauseTried)
		})
	}
}
