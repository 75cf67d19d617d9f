package translate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/store"
)

// Clients look for the name that they gave in names, and create from the id.
func TestSnapshotNamesHaveNoTag(t *testing.T) {
	for name, want := range map[string]openapi.SnapshotInfo{
		"":             {SnapshotID: "abc:default", Names: []string{}},
		"mine:default": {SnapshotID: "mine:default", Names: []string{"mine"}},
		"mine:v2":      {SnapshotID: "mine:v2", Names: []string{"mine"}},
	} {
		require.Equal(t, want, Snapshot(store.Snapshot{ID: "abc", Name: name}))
	}
}
