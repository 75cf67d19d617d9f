package harness

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// testFullTable leaves the facade no room in the table of processes. A create is refused, or served (a sandbox's own
// processes count elsewhere), or the facade ends, because a Go program that gets no thread does. Whichever it is, what
// runs goes on, nothing is left, and with the room back all works again, without help but a service manager's.
func testFullTable(t *testing.T) {
	group := processGroup(t)
	f := newFacade(t, settings{group: group, lines: "local:\n  warm: {}\n"})
	before := f.traces()
	var first, second struct {
		SandboxID string `json:"sandboxID"`
	}
	f.call("POST", "/v2/sandboxes", `{"templateID":"base"}`, http.StatusCreated, &first)
	limit := func(most string) {
		require.NoError(t, os.WriteFile(filepath.Join(group, "pids.max"), []byte(most), 0))
	}
	limit("1")
	statuses := map[int]int{}
	for range 8 {
		statuses[f.tryCreate(t)]++
	}
	t.Logf("creates without room for a process, by status (0: no answer): %v", statuses)
	for status := range statuses {
		assert.Contains(t, []int{0, http.StatusCreated, http.StatusServiceUnavailable}, status)
	}
	limit("max")
	f.comesBack()
	f.call("GET", "/sandboxes/"+first.SandboxID, "", http.StatusOK, nil)
	f.call("POST", "/v2/sandboxes", `{"templateID":"base"}`, http.StatusCreated, &second)
	f.call("GET", "/sandboxes/"+second.SandboxID, "", http.StatusOK, nil)
	out, err := f.isthmus("sandboxes", "kill", "--all")
	require.NoError(t, err, out)
	f.leavesNothing(t, before)
}

// comesBack waits until the facade answers, and starts it again if it ends instead.
func (f *facade) comesBack() {
	f.t.Helper()
	for deadline := time.Now().Add(startLimit); !f.answers(); {
		select {
		case <-f.ended:
			f.start()
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("the facade neither answers nor ends\n%s", f.output)
		}
	}
}

// tryCreate asks for a sandbox and returns the status; 0: there was no answer.
func (f *facade) tryCreate(t *testing.T) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/v2/sandboxes", strings.NewReader(`{"templateID":"base"}`))
	require.NoError(t, err)
	request.Header = http.Header{"X-Api-Key": {key}, "Content-Type": {"application/json"}}
	client := f.client()
	client.Timeout = time.Minute
	response, err := client.Do(request)
	if err != nil {
		return 0
	}
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}

// processGroup makes a control group that counts processes. It goes when the test has ended.
func processGroup(t *testing.T) string {
	t.Helper()
	group := "/sys/fs/cgroup/pids/isthmus-harness-table"
	if controllers, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers"); err == nil && strings.Contains(string(controllers), "pids") {
		require.NoError(t, os.WriteFile("/sys/fs/cgroup/cgroup.subtree_control", []byte("+pids"), 0))
		group = "/sys/fs/cgroup/isthmus-harness-table"
	}
	require.NoError(t, os.MkdirAll(group, 0o755))
	t.Cleanup(func() { assert.NoError(t, os.Remove(group)) })
	return group
}
