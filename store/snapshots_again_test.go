package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/store"
)

// A snapshot whose removal was refused is ready again, with its name unless another has taken it.
func TestASnapshotThatIsReadyAgain(t *testing.T) {
	for name, taken := range map[string]bool{"its name is free": false, "its name is another's": true} {
		t.Run(name, func(t *testing.T) {
			ctx, all := t.Context(), opened(t).Snapshots
			becomes := func(id string, state store.SnapshotState) store.Snapshot {
				changed, err := all.Change(ctx, id, func(s *store.Snapshot) error { s.State = state; return nil })
				require.NoError(t, err)
				return changed
			}
			for _, id := range []string{"old", "new"} {
				require.NoError(t, all.Add(ctx, store.Snapshot{
					ID: id, TeamID: "team", State: store.SnapshotCreating, Name: "mine:default", CreatedAt: time.Now(),
				}))
			}
			becomes("old", store.SnapshotReady)
			becomes("old", store.SnapshotRemoving)
			holder, kept := "old", "mine:default"
			if taken {
				becomes("new", store.SnapshotReady)
				holder, kept = "new", ""
			}
			require.Equal(t, kept, becomes("old", store.SnapshotReady).Name)
			found, err := all.Find(ctx, "team", "mine")
			require.NoError(t, err)
			require.Equal(t, holder, found.ID)
			require.Equal(t, "mine:default", found.Name)
		})
	}
}
