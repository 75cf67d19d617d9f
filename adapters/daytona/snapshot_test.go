package daytona

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestACopyIsReadyWhenItIsActive(t *testing.T) {
	for _, state := range []string{"", "pending", "building", "snapshotting", "removing", snapshotInactive, snapshotError, snapshotFailed} {
		require.False(t, copied(snapshotInfo{Name: copyName("d", "one"), State: state}).Ready, state)
	}
	active := copied(snapshotInfo{Name: copyName("d", "one"), State: snapshotActive})
	require.True(t, active.Ready)
	require.Equal(t, copyName("d", "one"), active.Ref)
}
