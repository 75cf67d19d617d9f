package fleet

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/translate/placement"
)

// TestADriftedPowerIsStillOffered marks the power, says so to the one who asked, and tries it again for the next one.
func TestADriftedPowerIsStillOffered(t *testing.T) {
	b := able(t, adapters.LevelFilesystem, nil)
	sb := b.create(request())
	require.Empty(t, b.fleet.States()[0].Drifts)
	b.provider.mu.Lock()
	b.provider.onPower = func(call, _ string) error {
		if call == "pause" {
			return adapters.Misunderstood(adapters.KindUnavailable, errors.New("hunter2"), "the cloud gave no answer that can be read: it is not JSON")
		}
		return nil
	}
	b.provider.mu.Unlock()
	err := b.fleet.Pause(t.Context(), "team", sb.ID, placement.Pause{})
	requireKind(t, adapters.KindUnavailable, err)
	require.ErrorContains(t, err, "it is not JSON. What the pool's provider answers to pause (pause) is not understood since 2")
	state := b.fleet.States()[0]
	require.Len(t, state.Drifts, 1)
	require.True(t, state.Doubtful(adapters.FeaturePause))
	require.False(t, state.Doubtful(adapters.FeatureSnapshot))
	require.Equal(t, "filesystem", state.Drifts[0].Declared)
	require.Equal(t, "the cloud gave no answer that can be read: it is not JSON", state.Drifts[0].Reason)
	require.True(t, state.Capabilities.Has(adapters.FeaturePause), "it is offered as before")

	b.provider.mu.Lock()
	b.provider.onPower = nil
	b.provider.mu.Unlock()
	require.NoError(t, b.fleet.Pause(t.Context(), "team", sb.ID, placement.Pause{}))
	state = b.fleet.States()[0]
	require.False(t, state.Doubtful(adapters.FeaturePause))
	require.NotZero(t, state.Drifts[0].Last)
}

// TestADriftedCreateIsLookedUp makes nothing twice when the answer to a create is not understood: the box is there.
func TestADriftedCreateIsLookedUp(t *testing.T) {
	b := able(t, adapters.LevelFilesystem, nil)
	b.provider.after = func(context.Context, adapters.Spec) error {
		return adapters.Misunderstood(adapters.KindUnknownOutcome, nil, "the cloud made a sandbox and does not say which")
	}
	sb := b.create(request())
	require.Equal(t, 1, b.provider.creates)
	require.Equal(t, sb.ID, b.provider.box(sb.ID).ID)
	state := b.fleet.States()[0]
	require.True(t, state.Doubtful(adapters.FeatureCreate))
	require.WithinDuration(t, time.Now(), state.Drifts[0].Last, time.Minute)
}
