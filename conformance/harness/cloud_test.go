package harness

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// simulate runs the simulated cloud of a vendor until the test ends, when it must leave nothing. It returns what the
// cloud said of itself as it began to serve: the configuration of a pool that is this cloud.
func simulate(t *testing.T, vendor, address, token string) string {
	t.Helper()
	folder := t.TempDir()
	require.NoError(t, shareImages(folder))
	log := &tail{}
	command := exec.Command(top("bin", "isthmus"), "simulate", vendor, "--listen", address, "--token", token, "--data", folder)
	command.Stdout, command.Stderr = log, log
	require.NoError(t, command.Start())
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	t.Cleanup(func() { endCloud(t, command.Process, ended, log, folder) })
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "is simulated at") }, startLimit, 20*time.Millisecond,
		"the simulated cloud does not serve")
	return log.String()
}

// endCloud asks a simulated cloud to stop, and looks at what it left in its folder.
func endCloud(t *testing.T, process *os.Process, ended <-chan error, log *tail, folder string) {
	_ = process.Signal(os.Interrupt)
	select {
	case err := <-ended:
		assert.NoError(t, err, "the simulated cloud: %s", log)
	case <-time.After(2 * stopLimit):
		_ = process.Kill()
		t.Errorf("the simulated cloud did not stop when it was asked to: %s", log)
	}
	left, err := os.ReadDir(folder)
	assert.NoError(t, err)
	for _, entry := range left {
		assert.Equal(t, "images", entry.Name(), "the simulated cloud left something")
	}
}
