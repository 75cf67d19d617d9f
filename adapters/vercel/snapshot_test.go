package vercel

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestACopyIsReadyWhenItsHolderHasStopped(t *testing.T) {
	for _, status := range []string{"pending", "running", "stopping", "snapshotting", statusFailed, statusAborted} {
		require.False(t, sandbox{Status: status, Persistent: true, Snapshot: "snap"}.copied().Ready, status)
	}
	require.False(t, sandbox{Status: statusStopped, Persistent: true}.copied().Ready, "nothing was kept")
	require.False(t, sandbox{Status: statusStopped, Snapshot: "snap"}.copied().Ready, "it keeps nothing")
	require.True(t, sandbox{Status: statusStopped, Persistent: true, Snapshot: "snap"}.copied().Ready)
}
