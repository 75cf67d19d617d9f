package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// The simulated account at Modal, as `isthmus simulate modal` has it.
const (
	modalAddress = "127.0.0.1:4140"
	modalID      = "ak-simulated"
	modalSecret  = "as-simulated"
)

// modalCases are those of the vendor Modal: its own SDKs judge the simulator, and E2B's SDKs work on sandboxes of it.
func modalCases() []listed {
	return []listed{
		{"the SDKs of Modal", testModalSDKs},
		{"python on a simulated Modal", func(t *testing.T) { runPython(t, newFacade(t, settings{lines: modalPool(t)})) }},
		{"javascript on a simulated Modal", func(t *testing.T) { runJavaScript(t, newFacade(t, settings{lines: modalPool(t)})) }},
	}
}

// simulateModal runs the simulated cloud and returns the file with the authority of its tunnels.
func simulateModal(t *testing.T) (authority string) {
	t.Helper()
	said := simulate(t, "modal", modalAddress, modalID+":"+modalSecret)
	found := regexp.MustCompile(`authority: ([^}\s]+)`).FindStringSubmatch(said)
	require.Len(t, found, 2, said)
	return found[1]
}

// modalPool starts the cloud and returns the configuration of a pool that is it.
func modalPool(t *testing.T) string {
	t.Helper()
	authority := simulateModal(t)
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte(modalID+":"+modalSecret), 0o600))
	return fmt.Sprintf(`pools:
- name: modal
  provider: modal
  api_url: http://%s
  credential: {file: %s}
  modal: {authority: %s}
  templates: {base: "", node: "node:22", python: "python:3.12"}
  require: {network: inject_headers_https}
`, modalAddress, token, authority)
}

// testModalSDKs has the vendor's own SDKs, unmodified, use the simulated cloud in all that they can do with it: the one
// for Python by default and with the first version of sandboxes. That for Go is tested beside the simulator.
func testModalSDKs(t *testing.T) {
	authority := simulateModal(t)
	environment := append(cleanEnvironment(), "MODAL_SERVER_URL=http://"+modalAddress, "MODAL_TOKEN_ID="+modalID, "MODAL_TOKEN_SECRET="+modalSecret,
		"MODAL_CONFIG_PATH="+filepath.Join(t.TempDir(), "none.toml"), "MODAL_MAX_THROTTLE_WAIT=10",
		"SIMULATOR_CA="+authority, "NODE_EXTRA_CA_CERTS="+authority)
	for _, program := range [][]string{
		{top("conformance", "sdk", "modal", "js"), "", "node", "sdk.mjs"},
		{top("conformance", "sdk", "modal", "python"), "", modalPython(), "-B", "sdk.py"},
		{top("conformance", "sdk", "modal", "python"), "MODAL_SANDBOX_V2=0", modalPython(), "-B", "sdk.py"},
	} {
		command := exec.CommandContext(t.Context(), program[2], program[3:]...)
		command.Dir, command.Env = program[0], append(environment, program[1])
		out, err := command.CombinedOutput()
		t.Logf("%s", out)
		require.NoError(t, err)
		require.Regexp(t, `: [1-9][0-9]* checks\n$`, string(out))
	}
}

// modalPython is the interpreter with the vendor's SDK.
func modalPython() string { return top(".tmp", "modal-python", "bin", "python") }

// prepareModal installs the vendor's SDKs, at the versions that are written down.
func prepareModal() error {
	folder := top("conformance", "sdk", "modal", "js")
	// Without a lock: npm writes none that it accepts again for what this SDK has for other platforms.
	if err := once("modal-node", filepath.Join(folder, "package.json"), func(string) error {
		return run("npm", "install", "--prefix", folder, "--no-package-lock", "--omit=optional", "--no-audit", "--no-fund", "--silent")
	}); err != nil {
		return err
	}
	requirements := top("conformance", "sdk", "modal", "python", "requirements.txt")
	return once("modal-python", requirements, func(folder string) error {
		if err := run("python3", "-m", "venv", "--clear", folder); err != nil {
			return err
		}
		return run(filepath.Join(folder, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", "--requirement", requirements)
	})
}
