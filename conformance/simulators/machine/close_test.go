//go:build linux

package machine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// traces are what of the machine bears the cloud's mark: processes by their environment, and disks and mounts by the
// cloud's folder.
func traces(t *testing.T, folder, mark string) (found []string) {
	t.Helper()
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	for _, file := range environments {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), mark) {
			found = append(found, file)
		}
	}
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	require.NoError(t, err)
	for _, file := range append(files, "/proc/self/mountinfo") {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), folder) {
			found = append(found, file)
		}
	}
	return found
}

func TestCloseLeavesNothing(t *testing.T) {
	config, mark := configuration(t), "mark-"+filepath.Base(t.TempDir())+t.Name()
	c, err := machine.New(t.Context(), config)
	require.NoError(t, err)
	spec := machine.Spec{Env: map[string]string{"MARK": mark}}
	for range 3 {
		b, err := c.Create(t.Context(), spec)
		require.NoError(t, err)
		_, err = b.Start(t.Context(), machine.Command{Argv: []string{"sleep", "1000"}})
		require.NoError(t, err)
		spec.From, err = b.Snapshot(t.Context())
		require.NoError(t, err)
	}
	stopped, err := c.Create(t.Context(), spec)
	require.NoError(t, err)
	require.NoError(t, stopped.Stop(t.Context()))
	require.GreaterOrEqual(t, len(traces(t, config.Dir, mark)), 6, "three processes and three disks")
	require.NoError(t, c.Close())
	require.Empty(t, traces(t, config.Dir, mark))
	require.NoDirExists(t, config.Dir)
}

// A cloud whose process was killed leaves boxes; the next one in its folder removes them.
func TestTheNextCloudRemovesWhatALostOneLeft(t *testing.T) {
	config := configuration(t)
	c, err := machine.New(t.Context(), config)
	require.NoError(t, err)
	_, err = c.Create(t.Context(), machine.Spec{})
	require.NoError(t, err)
	boxes := filepath.Join(config.Dir, "local", "boxes")
	kept, err := os.ReadDir(boxes)
	require.NoError(t, err)
	require.Len(t, kept, 1)
	require.NoError(t, c.Abandon())
	next, err := machine.New(t.Context(), config)
	require.NoError(t, err)
	kept, err = os.ReadDir(boxes)
	require.NoError(t, err)
	require.Empty(t, kept)
	require.NoError(t, next.Close())
}
