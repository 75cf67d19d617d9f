//go:build linux

package places

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/conformance/sdk"
	"github.com/isthmus/isthmus/server/admin"
)

// TestPowers runs what the unmodified clients have for pause, snapshots and network rules through an Isthmus in front of
// boxes that can be paused and copied. They are reached by nothing but exec, the poorest way.
func TestPowers(t *testing.T) {
	top, err := filepath.Abs("../..")
	require.NoError(t, err)
	install := sdk.Installer{Top: top}
	require.NoError(t, install.Python())
	require.NoError(t, install.Node())
	where := isthmus(t, onlyExec)
	for name, command := range map[string][]string{
		"python":     {install.Interpreter(), "-m", "pytest", "-q", "--color=no", "--timeout=180", "powers"},
		"javascript": {"node", "--test", "--test-reporter=spec", "powers/"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := map[string]string{"python": "python", "javascript": "js"}[name]
			program(t, where, filepath.Join(top, "conformance", "sdk", folder), command)
		})
	}
}

// program runs one client's suite to its end.
func program(t *testing.T, where admin.Environment, folder string, command []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "E2B_API_URL="+where.APIURL, "E2B_SANDBOX_URL="+where.SandboxURL, "E2B_API_KEY="+where.APIKey,
		"ISTHMUS_TEST_POWERS=pause=memory snapshot=filesystem", "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	require.NoError(t, err)
}
