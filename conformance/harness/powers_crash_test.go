package harness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// testPowerCrashes kills the facade at random moments while sandboxes are paused, resumed and copied: afterwards each is
// there once with its files, runs when it is connected to, and no copy is left that no record knows.
func testPowerCrashes(t *testing.T, crashes int) {
	f := newFacade(t, settings{lines: "local: {warm: {}}\n"}) // what is in stock has no sandbox
	before := f.traces()
	ids := make([]string, 3)
	for i := range ids {
		var made struct {
			SandboxID string `json:"sandboxID"`
		}
		f.call(http.MethodPost, "/sandboxes", `{"templateID":"base","timeout":3600}`, http.StatusCreated, &made)
		ids[i] = made.SandboxID
		require.Equal(t, http.StatusOK, f.anyhow(t.Context(), http.MethodPost, "/files?path=/home/user/kept", "kept", made.SandboxID))
	}
	for range crashes {
		f.crashWhileMoving(t, ids)
	}
	for _, id := range ids {
		require.Eventually(t, func() bool {
			status := f.anyhow(t.Context(), http.MethodPost, "/v2/sandboxes/"+id+"/connect", `{"timeout":3600}`, "")
			return status == http.StatusOK || status == http.StatusCreated
		}, time.Minute, 200*time.Millisecond, "sandbox %s runs again", id)
		require.Equal(t, http.StatusOK, f.anyhow(t.Context(), http.MethodGet, "/files?path=/home/user/kept", "", id))
	}
	require.Eventually(t, func() bool { _, paired := f.paired(t); return paired }, time.Minute, 500*time.Millisecond)
	f.forgetSnapshots(t)
	require.Eventually(t, func() bool { // copies of calls that died are removed by the next look but one at the latest
		copies, err := filepath.Glob(filepath.Join(f.data, "local", "snapshots", "*"))
		return err == nil && len(copies) == 0
	}, 2*time.Minute, 500*time.Millisecond, "copies that no record knows are removed")
	out, err := f.isthmus("sandboxes", "kill", "--all")
	require.NoError(t, err, out)
	f.leavesNothing(t, before)
	f.poolsAreEmpty(t)
}

// crashWhileMoving kills the facade while every sandbox is being paused, resumed or copied, and starts it again.
func (f *facade) crashWhileMoving(t *testing.T, ids []string) {
	ctx, cancel := context.WithCancel(t.Context())
	var moving sync.WaitGroup
	for _, id := range ids {
		moving.Go(func() {
			for ctx.Err() == nil {
				path := "/sandboxes/" + id
				for _, c := range []struct{ path, body string }{
					{path + "/pause", `{"memory":false}`}, {path + "/connect", `{"timeout":3600}`}, {path + "/snapshots", "{}"},
				} {
					_ = f.anyhow(ctx, http.MethodPost, c.path, c.body, "")
				}
			}
		})
	}
	time.Sleep(time.Duration(100+rand.IntN(900)) * time.Millisecond) // the moment is what is tried
	f.kill()
	cancel()
	moving.Wait()
	f.start()
}

// forgetSnapshots removes the team's snapshots, page by page.
func (f *facade) forgetSnapshots(t *testing.T) {
	t.Helper()
	for taken := 0; ; {
		var listed []struct {
			SnapshotID string `json:"snapshotID"`
		}
		f.call(http.MethodGet, "/snapshots?limit=100", "", http.StatusOK, &listed)
		if len(listed) == 0 {
			t.Logf("%d snapshots were taken", taken)
			return
		}
		taken += len(listed)
		for _, one := range listed {
			f.call(http.MethodDelete, "/templates/"+strings.ReplaceAll(one.SnapshotID, ":", "%3A"), "", http.StatusNoContent, nil)
		}
	}
}

// anyhow sends one request to a facade that may die under it, to a sandbox's envd where one is named, and returns the
// status; 0: there was no answer.
func (f *facade) anyhow(ctx context.Context, method, path, body, sandbox string) int {
	request, err := http.NewRequestWithContext(ctx, method, f.url+path, strings.NewReader(body))
	if err != nil {
		panic(fmt.Sprintf("harness: %s %s: %v", method, path, err))
	}
	request.Header = http.Header{"X-Api-Key": {key}, "Content-Type": {"application/json"}}
	if sandbox != "" {
		request.Header = http.Header{"E2b-Sandbox-Id": {sandbox}, "E2b-Sandbox-Port": {"49983"}, "Content-Type": {"application/octet-stream"}}
	}
	response, err := f.client().Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}
