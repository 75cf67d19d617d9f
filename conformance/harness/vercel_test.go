package harness

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The simulated account at Vercel, as `isthmus simulate vercel` has it.
const (
	vercelAddress = "127.0.0.1:4100"
	vercelToken   = "simulated"
)

// vercelCases are those of the vendor Vercel: its own SDKs judge the simulator, and E2B's SDKs work on sandboxes of it.
func vercelCases() []listed {
	return []listed{
		{"the SDKs of Vercel", testVercelSDKs},
		{"the suite of adapters on an account", testVercelLive},
		{"creates while Vercel fails", testVercelFaults},
		{"powers on a simulated Vercel", func(t *testing.T) { testPowersOf(t, onVercel(t)) }},
		{"python on a simulated Vercel", func(t *testing.T) { runPython(t, newFacade(t, onVercel(t))) }},
		{"javascript on a simulated Vercel", func(t *testing.T) { runJavaScript(t, newFacade(t, onVercel(t))) }},
	}
}

// askVercel calls the control of the simulated cloud; status 0: there was no answer.
func askVercel(ctx context.Context, method, path, body string) (answer string, status int) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+vercelAddress+"/simulator/"+path, strings.NewReader(body))
	if err != nil {
		return err.Error(), 0
	}
	request.Header.Set("Authorization", "Bearer "+vercelToken)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error(), 0
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return err.Error(), 0
	}
	return string(text), response.StatusCode
}

// onVercel is a facade whose sandboxes are at a simulated Vercel, where two processors come with 4 GiB of memory.
func onVercel(t *testing.T) settings {
	return settings{lines: vercelPool(t), told: []string{"ISTHMUS_TEST_MEMORY_MB=4096", "ISTHMUS_TEST_SERVED=autoPause,allowOut"}}
}

// vercelPool starts the cloud and returns the configuration of a pool that is it.
func vercelPool(t *testing.T) string {
	t.Helper()
	simulate(t, "vercel", vercelAddress, vercelToken)
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte(vercelToken), 0o600))
	return fmt.Sprintf(`pools:
- name: vercel
  provider: vercel
  api_url: http://%s/api
  sandbox_url: http://%[1]s
  credential: {file: %s}
  vercel: {team: team_simulated, project: prj_simulated, plan: enterprise}
  templates: {base: "", node: "", python: ""}
`, vercelAddress, token)
}

// testVercelSDKs has the vendor's own SDKs, unmodified, use the simulated cloud in all that they can do with it.
func testVercelSDKs(t *testing.T) {
	simulate(t, "vercel", vercelAddress, vercelToken)
	environment := append(cleanEnvironment(), "VERCEL_SIMULATOR=http://"+vercelAddress, "VERCEL_SIMULATOR_TOKEN="+vercelToken)
	for _, program := range [][]string{
		{top("conformance", "sdk", "vercel", "js"), "node", "--test", "--test-timeout=120000", "--test-reporter=spec", "tests/"},
		{top("conformance", "sdk", "vercel", "python"), vercelPython(), "-m", "pytest", "-q", "--color=no"},
	} {
		command := exec.CommandContext(t.Context(), program[1], program[2:]...)
		command.Dir, command.Env = program[0], environment
		out, err := command.CombinedOutput()
		t.Logf("%s", out)
		require.NoError(t, err)
	}
}

// vercelPython is the interpreter with the vendor's SDK.
func vercelPython() string { return top(".tmp", "vercel-python", "bin", "python") }

// prepareVercel installs the vendor's SDKs, at the versions that are written down.
func prepareVercel() error {
	folder := top("conformance", "sdk", "vercel", "js")
	if err := once("vercel-node", filepath.Join(folder, "package-lock.json"), func(string) error {
		return run("npm", "ci", "--prefix", folder, "--no-audit", "--no-fund", "--silent")
	}); err != nil {
		return err
	}
	requirements := top("conformance", "sdk", "vercel", "python", "requirements.txt")
	return once("vercel-python", requirements, func(folder string) error {
		if err := run("python3", "-m", "venv", "--clear", folder); err != nil {
			return err
		}
		return run(filepath.Join(folder, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", "--requirement", requirements)
	})
}

// testVercelLive runs the suite of adapters as an operator does who has an account.
func testVercelLive(t *testing.T) {
	file := filepath.Join(t.TempDir(), "isthmus.yaml")
	require.NoError(t, os.WriteFile(file, []byte("data: "+t.TempDir()+"\n"+vercelPool(t)), 0o600))
	live := []string{"conformance", "--config", file, "--provider", "vercel"}
	out, err := exec.Command(top("bin", "isthmus"), live...).CombinedOutput()
	require.Error(t, err, "nothing is done that may cost money without being told")
	require.Contains(t, string(out), "--live")
	out, err = exec.CommandContext(t.Context(), top("bin", "isthmus"), append(live, "--live", "--only", "pause")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "declared: pause = filesystem (declared, ")
	require.Regexp(t, `[1-9][0-9]* passed, 0 failed`, string(out))
}

// testVercelFaults has an unmodified client make sandboxes while the cloud fails in every way, with this machine behind
// it: none is lost, none is left, none is made twice.
func testVercelFaults(t *testing.T) {
	s := onVercel(t)
	s.lines += "- {name: local, provider: local}\n"
	f := newFacade(t, s)
	before := f.traces()
	for _, fault := range []string{
		`{"operation": "create", "status": 503, "code": "unavailable", "message": "No capacity is left.", "skip": 1, "times": 2}`,
		`{"operation": "create", "lose": true, "skip": 1, "times": 2}`,
		`{"operation": "create", "status": 502, "body": "<html>", "bodyType": "text/html", "times": 1}`,
		`{"operation": "run", "status": 503, "code": "unavailable", "message": "Try later.", "skip": 6, "times": 2}`,
		`{"operation": "create", "status": 429, "code": "rate_limited", "message": "Slow down.", "retryAfterS": 1, "skip": 1, "times": 1}`,
	} {
		answer, status := askVercel(t.Context(), http.MethodPost, "faults", fault)
		require.Equal(t, http.StatusOK, status, answer)
	}
	out, err := f.program(t.Context(), top("conformance", "sdk", "python"), python(), "program.py", "10")
	require.NoError(t, err)
	require.Contains(t, out, "10 sandboxes")
	left, status := askVercel(t.Context(), http.MethodGet, "faults", "")
	require.Equal(t, http.StatusOK, status)
	t.Logf("what was not struck: %s", left)
	f.leavesNothing(t, before)
	require.Eventually(t, func() bool {
		sandboxes, status := askVercel(t.Context(), http.MethodGet, "sandboxes", "")
		return status == http.StatusOK && strings.Count(sandboxes, `"name"`) == strings.Count(sandboxes, `"isthmusbaked`)
	}, 2*time.Minute, 100*time.Millisecond, "something is left in the account")
}
