package server

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/server/fleet"
	"github.com/isthmus/isthmus/translate/placement"
)

func TestDriftsAreCounted(t *testing.T) {
	var text bytes.Buffer
	poolMetrics(&text, []fleet.PoolState{
		{Pool: placement.Pool{Name: "calm"}},
		{Pool: placement.Pool{Name: "cloud"}, Drifts: []adapters.Drift{
			{Feature: adapters.FeaturePause, Operation: "resume", Drifted: true, Times: 2, Total: 5},
			{Feature: adapters.FeatureCreate, Operation: "create", Total: 1},
		}},
	})
	for _, line := range []string{
		"# TYPE isthmus_pool_drifts_total counter\n", `isthmus_pool_drifts_total{pool="cloud",capability="pause",operation="resume"} 5` + "\n",
		`isthmus_pool_drifts_total{pool="cloud",capability="create",operation="create"} 1` + "\n",
		`isthmus_pool_drifted{pool="cloud",capability="pause",operation="resume"} 1` + "\n",
		`isthmus_pool_drifted{pool="cloud",capability="create",operation="create"} 0` + "\n",
	} {
		require.Contains(t, text.String(), line)
	}
	require.NotContains(t, text.String(), `isthmus_pool_drifted{pool="calm"`)
}
