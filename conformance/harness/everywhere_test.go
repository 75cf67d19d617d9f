package harness

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// everywhereCases are those over all simulated clouds and this machine together.
func everywhereCases() []listed {
	return []listed{
		{"one program everywhere", testOneProgram},
		{"a burst over all clouds", testBurstOverClouds},
		{"GPUs are where they are", testGPUs},
	}
}

// clouds starts all simulated clouds and returns the configuration of the pool that each of them is.
func clouds(t *testing.T) map[string]string {
	t.Helper()
	pools := map[string]string{"modal": modalPool(t), "vercel": vercelPool(t), "daytona": daytonaPool(t, "container"), "local": "- name: local\n  provider: local\n"}
	for name, pool := range pools {
		pools[name] = strings.TrimPrefix(pool, "pools:\n")
	}
	return pools
}

// testOneProgram runs the example of the README unchanged on every place: only the configuration says which it is,
// and it prints the same.
func testOneProgram(t *testing.T) {
	pools := clouds(t)
	printed := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		t.Run(name, func(t *testing.T) {
			f := newFacade(t, settings{lines: "pools:\n" + pools[name]})
			before := f.traces()
			out, err := f.program(t.Context(), top("docs", "examples"), python(), "hello.py")
			require.NoError(t, err)
			f.leavesNothing(t, before)
			first, rest, _ := strings.Cut(out, "\n")
			require.Regexp(t, `^sandbox +[a-z0-9]+$`, first)
			printed[name] = strings.ReplaceAll(rest, " | ", "\nstreamed   ") // in how many pieces output comes is nobody's promise
		})
	}
	t.Logf("%s", printed["local"])
	for name, text := range printed {
		require.Equal(t, printed["local"], text, "the program on %s printed something else", name)
	}
}

// testBurstOverClouds makes many sandboxes at once over clouds of which each fails in its own ways: all are made, once,
// and nothing is left.
func testBurstOverClouds(t *testing.T) {
	pools, folder := clouds(t), t.TempDir()
	lines := "operator: {listen: " + operatorAddress + "}\nlocal: {warm: {}}\npools:\n"
	for _, bad := range []struct{ name, plan string }{
		{"modal", "rules: [{fault: lost_answer, calls: [create], times: 3}, {fault: capacity, times: 16}]"},
		{"vercel", "rules: [{fault: lost_answer, calls: [create], times: 2}, {fault: rate_limited, calls: [create], times: 1, retryAfter: 2s}]"},
		{"daytona", "rules: [{fault: lost_answer, calls: [create], times: 1}, {fault: outage, calls: [create], times: 2}]"},
	} {
		path := filepath.Join(folder, bad.name+".yaml")
		require.NoError(t, os.WriteFile(path, []byte(bad.plan), 0o644))
		lines += pools[bad.name] + "  fault: " + path + "\n"
	}
	f := newFacade(t, settings{lines: lines + pools["local"]})
	before := f.traces()
	burst := count(t, "ISTHMUS_TEST_BURST", 24)
	out, err := f.program(t.Context(), top("conformance", "sdk", "python"), python(), "pools.py", "burst", strconv.Itoa(burst))
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%d sandboxes", burst), strings.TrimSpace(out))
	attempts := f.attempts(t)
	t.Logf("%s", attempts)
	for _, struck := range []string{`pool="modal",outcome="capacity"`, `pool="vercel",outcome="rate_limited"`, `pool="daytona",outcome="unavailable"`} {
		require.Contains(t, attempts, struck)
	}
	f.leavesNothing(t, before)
}

// testGPUs asks for a GPU where the pool of this machine comes first: only Modal is left, and its sandbox is made there.
func testGPUs(t *testing.T) {
	modal := strings.TrimPrefix(modalPool(t), "pools:\n")
	f := newFacade(t, settings{lines: "operator: {listen: " + operatorAddress + "}\nlocal: {warm: {}}\npools:\n- name: local\n  provider: local\n" + modal})
	before := f.traces()
	out, err := f.program(t.Context(), top("conformance", "sdk", "python"), python(), "pools.py", "gpus")
	require.NoError(t, err)
	require.Equal(t, "one sandbox", strings.TrimSpace(out))
	attempts := f.attempts(t)
	require.Contains(t, attempts, `pool="modal",outcome="ok"} 1`)
	require.NotContains(t, attempts, `pool="local"`)
	f.leavesNothing(t, before)
}
