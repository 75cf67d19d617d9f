package harness

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The simulated account at Daytona, as `isthmus simulate daytona` has it.
const (
	daytonaAddress = "127.0.0.1:4180"
	daytonaKey     = "dtn_simulated"
)

// daytonaCases are those of the vendor Daytona: its own SDKs judge the simulator, and E2B's SDKs work on sandboxes of it.
func daytonaCases() []listed {
	return []listed{
		{"the SDKs of Daytona", testDaytonaSDKs},
		{"powers on simulated machines of Daytona", func(t *testing.T) { testPowersOf(t, settings{lines: daytonaPool(t, "linux-vm")}) }},
		{"python on a simulated Daytona", func(t *testing.T) { runPython(t, newFacade(t, settings{lines: daytonaPool(t, "container")})) }},
		{"javascript on a simulated Daytona", func(t *testing.T) { runJavaScript(t, newFacade(t, settings{lines: daytonaPool(t, "container")})) }},
	}
}

// daytonaPool starts the cloud and returns the configuration of a pool that is it. The organization has a snapshot of
// the sizes that E2B's clients expect, of the class of the pool.
func daytonaPool(t *testing.T, class string) string {
	t.Helper()
	simulate(t, "daytona", daytonaAddress, daytonaKey)
	body := fmt.Sprintf(`{"name": "as-e2b", "imageName": "daytonaio/base:0.8.0", "cpu": 2, "memory": 1, "disk": 10, "sandboxClass": %q}`, class)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+daytonaAddress+"/api/snapshots", strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+daytonaKey)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte(daytonaKey), 0o600))
	return fmt.Sprintf(`pools:
- name: daytona
  provider: daytona
  api_url: http://%s/api
  credential: {file: %s}
  isolation: %s
  templates: {base: as-e2b, node: as-e2b, python: "image:python:3.12"}
`, daytonaAddress, key, map[string]string{"container": "container", "linux-vm": "vm"}[class])
}

// testDaytonaSDKs has the vendor's own SDKs, unmodified, use the simulated cloud in all that they can do with it.
func testDaytonaSDKs(t *testing.T) {
	simulate(t, "daytona", daytonaAddress, daytonaKey)
	environment := append(cleanEnvironment(), "DAYTONA_SIMULATOR=http://"+daytonaAddress, "DAYTONA_SIMULATOR_KEY="+daytonaKey)
	for _, program := range [][]string{
		{top("conformance", "sdk", "daytona", "js"), "node", "--test", "--test-force-exit", "--test-reporter=spec", "tests/"},
		{top("conformance", "sdk", "daytona", "python"), daytonaPython(), "-m", "pytest", "-q", "--color=no", "-p", "no:cacheprovider"},
	} {
		command := exec.CommandContext(t.Context(), program[1], program[2:]...)
		command.Dir, command.Env = program[0], environment
		out, err := command.CombinedOutput()
		t.Logf("%s", out)
		require.NoError(t, err)
	}
}

// daytonaPython is the interpreter with the vendor's SDK.
func daytonaPython() string { return top(".tmp", "daytona-python", "bin", "python") }

// prepareDaytona installs the vendor's SDKs, at the versions that are written down.
func prepareDaytona() error {
	folder := top("conformance", "sdk", "daytona", "js")
	if err := once("daytona-node", filepath.Join(folder, "package-lock.json"), func(string) error {
		return run("npm", "ci", "--prefix", folder, "--no-audit", "--no-fund", "--silent")
	}); err != nil {
		return err
	}
	requirements := top("conformance", "sdk", "daytona", "python", "requirements.txt")
	return once("daytona-python", requirements, func(folder string) error {
		if err := run("python3", "-m", "venv", "--clear", folder); err != nil {
			return err
		}
		return run(filepath.Join(folder, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", "--requirement", requirements)
	})
}
