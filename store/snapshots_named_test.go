package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/store"
)

func TestSnapshotsByNameAndID(t *testing.T) {
	ctx, all := t.Context(), opened(t).Snapshots
	began := time.Now()
	for i, one := range []struct{ id, name string }{
		{"plain", ""}, {"first", "mine:default"}, {"second", "mine:v2"}, {"other", "mine-too:default"},
	} {
		snapshot := store.Snapshot{ID: one.id, TeamID: "team", State: store.SnapshotCreating, Name: one.name, CreatedAt: began.Add(time.Duration(i) * time.Second)}
		require.NoError(t, all.Add(ctx, snapshot))
		_, err := all.Change(ctx, one.id, func(s *store.Snapshot) error { s.State = store.SnapshotReady; return nil })
		require.NoError(t, err)
	}
	for reference, want := range map[string][]string{
		"":             {"other", "second", "first", "plain"},
		"mine":         {"second"}, // the newest of any tag
		"mine:default": {"first"},
		"mine:v2":      {"second"},
		"mine:v3":      nil,
		"min":          nil,
		"plain":        {"plain"},
		"second":       {"second"},
		// An id with the tag that ids are shown with.
		"plain:default": {"plain"},
	} {
		page, err := all.List(ctx, store.SnapshotQuery{TeamID: "team", Name: reference, Limit: 10})
		require.NoError(t, err)
		var got []string
		for _, s := range page.Snapshots {
			got = append(got, s.ID)
		}
		require.Equal(t, want, got, reference)
		require.Nil(t, page.Next)
	}
}
