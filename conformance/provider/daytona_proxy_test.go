//go:build linux

package provider_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	simulator "github.com/isthmus/isthmus/conformance/simulators/daytona"
)

// TestDaytonaBehindAProxy has a proxy that lost the way to the API answer 404: no box is taken for gone by it.
func TestDaytonaBehindAProxy(t *testing.T) {
	a := newDaytonaAccount(t, nil, nil)
	powers := adapters.PowersOf(a.adapter)
	for name, fault := range map[string]string{"page": simulator.FaultLostWay, "json": simulator.FaultNoRoute} {
		t.Run(fault, func(t *testing.T) {
			id := "behind" + name
			spec := a.spec(t, id, "base")
			_, err := a.adapter.Create(t.Context(), spec)
			require.NoError(t, err)
			require.NoError(t, a.Strike(simulator.Fault{Name: fault}))
			_, err = a.adapter.Get(t.Context(), id)
			require.Equal(t, adapters.KindUnavailable, adapters.KindOf(err), "get: %v", err)
			require.Equal(t, adapters.KindUnavailable, adapters.KindOf(a.adapter.Destroy(t.Context(), id)), "destroy")
			_, err = a.adapter.List(t.Context(), "traps")
			require.Equal(t, adapters.KindUnavailable, adapters.KindOf(err), "list: %v", err)
			require.Equal(t, adapters.KindUnavailable, adapters.KindOf(powers.Extender.Extend(t.Context(), id, time.Now().Add(time.Hour))), "extend")
			_, err = a.adapter.Create(t.Context(), a.spec(t, id+"new", "base"))
			require.Equal(t, adapters.KindUnknownOutcome, adapters.KindOf(err), "create: %v", err)

			a.Heal()
			require.NoError(t, a.Strike(simulator.Fault{Name: fault, Operation: "delete"}))
			require.Equal(t, adapters.KindUnavailable, adapters.KindOf(a.adapter.Destroy(t.Context(), id)), "a delete that was not done")
			a.Heal()
			require.NoError(t, a.Strike(simulator.Fault{Name: fault, Operation: "list"}))
			_, err = a.adapter.Get(t.Context(), "another")
			require.Equal(t, adapters.KindUnavailable, adapters.KindOf(err), "what is not found by name may be listed")
			a.Heal()

			box, err := a.adapter.Get(t.Context(), id)
			require.NoError(t, err)
			require.True(t, box.Alive)
			require.NoError(t, a.adapter.Destroy(t.Context(), id))
		})
	}
	t.Run("the API's own answer to a list", func(t *testing.T) {
		require.NoError(t, a.Strike(simulator.Fault{Name: "not found", Operation: "list"}))
		defer a.Heal()
		_, err := a.adapter.List(t.Context(), "traps")
		require.Equal(t, adapters.KindUnavailable, adapters.KindOf(err), "%v", err)
		_, err = a.adapter.Get(t.Context(), "another")
		require.Equal(t, adapters.KindUnavailable, adapters.KindOf(err), "%v", err)
	})
	a.nothingLeft(t)
}

// TestDaytonaRecovers has a stop end in an error that can be recovered: the box is paused, and resumes with its files.
func TestDaytonaRecovers(t *testing.T) {
	a := newDaytonaAccount(t, nil, nil)
	pauser := adapters.PowersOf(a.adapter).Pauser
	spec := a.spec(t, "broken", "base")
	_, err := a.adapter.Create(t.Context(), spec)
	require.NoError(t, err)
	require.NoError(t, a.Strike(simulator.Fault{Name: simulator.FaultBreaks, Operation: "stop", Times: 1}))
	err = pauser.Pause(t.Context(), spec.BoxID, adapters.LevelFilesystem)
	require.Equal(t, adapters.KindUnavailable, adapters.KindOf(err), "%v", err)

	box, err := a.adapter.Get(t.Context(), spec.BoxID)
	require.NoError(t, err)
	require.True(t, box.Alive && box.Paused, "%+v", box)
	require.NoError(t, pauser.Pause(t.Context(), spec.BoxID, adapters.LevelFilesystem), "it is paused already")
	var row map[string]any
	a.ask(t, http.MethodGet, "/sandbox/"+spec.BoxID, "", &row)
	require.Equal(t, []any{"error", true, nil}, []any{row["state"], row["recoverable"], row["autoDestroyAt"]})

	a.traffic.take()
	box, err = pauser.Resume(t.Context(), spec)
	require.NoError(t, err)
	require.True(t, box.Alive && !box.Paused, "%+v", box)
	requests, _, _ := a.traffic.take()
	require.Contains(t, requests, "POST /api/sandbox/"+row["id"].(string)+"/recover")
	require.NoError(t, a.adapter.Destroy(t.Context(), spec.BoxID))
	a.nothingLeft(t)
}
