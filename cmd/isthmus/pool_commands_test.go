package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/server/fleet"
	"github.com/isthmus/isthmus/translate/placement"
)

func TestPoolsShowWhatDrifts(t *testing.T) {
	first := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	pool := fleet.PoolState{
		Pool: placement.Pool{Name: "cloud", Capabilities: adapters.Capabilities{
			adapters.FeaturePause:    {Feature: adapters.FeaturePause, Value: "filesystem"},
			adapters.FeatureSnapshot: {Feature: adapters.FeatureSnapshot, Value: "filesystem"},
		}},
		Drifts: []adapters.Drift{
			{Feature: adapters.FeaturePause, Operation: "resume", Declared: "filesystem", Drifted: true, First: first, Last: first.Add(time.Hour), Times: 3, Reason: "it is not JSON"},
			{Feature: adapters.FeatureSnapshot, Operation: "forget", Declared: "filesystem", First: first, Last: first, Times: 1, Understood: first.Add(time.Minute), Reason: "it is empty"},
		},
	}
	var table, below strings.Builder
	printPool(&table, pool)
	require.Contains(t, table.String(), "pause(drifted) snapshot\n")
	require.NoError(t, printDrifts(&below, []fleet.PoolState{{}, pool}))
	require.Equal(t, `
pool cloud: pause, declared filesystem: drifted. Answers to resume that were not understood: 3, from 2026-11-30T10:00:00Z to 2026-11-30T11:00:00Z. The last one: it is not JSON

pool cloud: snapshot, declared filesystem: understood again since 2026-11-30T10:01:00Z. Answers to forget that were not understood: 1, from 2026-11-30T10:00:00Z to 2026-11-30T10:00:00Z. The last one: it is empty
`, below.String())
}
