package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/translate/placement"
)

// No end lies behind the one that the pool gives its sandboxes, and one that is paused at its end has time for that.
func TestThePoolsLongestLifeHolds(t *testing.T) {
	for name, c := range map[string]struct {
		most      time.Duration
		autoPause bool
		want      time.Duration
	}{
		"the pool's":                    {45 * time.Minute, false, 45 * time.Minute},
		"less the time of a pause":      {45 * time.Minute, true, 43 * time.Minute},
		"a short one is not used up":    {5 * time.Minute, true, 4*time.Minute + 30*time.Second},
		"the configured one is shorter": {48 * time.Hour, true, 24 * time.Hour},
		"the pool has none":             {0, true, 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			b := able(t, adapters.LevelMemory, nil)
			terms := *b.fleet.pools.get("one").terms.Load()
			terms.facts.MaxLife = placement.Milliseconds(c.most)
			b.fleet.pools.get("one").terms.Store(&terms)
			ctx, req := t.Context(), request()
			req.AutoPause = c.autoPause
			id := b.create(req).ID
			ends := func() {
				t.Helper()
				sb, err := b.fleet.Sandbox(ctx, "team", id)
				require.NoError(t, err)
				require.Equal(t, c.want, sb.EndAt.Sub(sb.StartedAt))
			}
			require.NoError(t, b.fleet.SetTimeout(ctx, "team", id, 1000*time.Hour))
			ends()
			require.NoError(t, b.fleet.Pause(ctx, "team", id, placement.Pause{}))
			_, resumed, err := b.fleet.Connect(ctx, "team", id, placement.Wake{Timeout: 24 * time.Hour})
			require.NoError(t, err)
			require.True(t, resumed)
			ends()
			sb, err := b.fleet.Sandbox(ctx, "team", id)
			require.NoError(t, err)
			backstop := sb.EndAt.Add(b.fleet.cfg.Timing.Change + slack(sb))
			require.WithinDuration(t, backstop, b.provider.resumed[0].Envd.Deadline, 10*time.Second, "the place is asked for no more")
			require.NoError(t, b.fleet.Kill(ctx, "team", id))

			req.Timeout = 24 * time.Hour
			if c.most > 0 {
				req.Timeout = min(c.most, req.Timeout)
			}
			id = b.create(req).ID
			ends()
			_, err = b.store.Sandboxes.Change(ctx, id, func(sb *store.Sandbox) error {
				sb.StartedAt = sb.StartedAt.Add(-c.want)
				return nil
			})
			require.NoError(t, err)
			requireKind(t, adapters.KindInvalid, b.fleet.SetTimeout(ctx, "team", id, time.Minute))
		})
	}
}
