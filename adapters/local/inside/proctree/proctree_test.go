//go:build linux

package proctree

import (
	"bufio"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEndBelowEndsAllButTheTop(t *testing.T) {
	top := exec.Command("sh", "-c", `sh -c 'sleep 60 & echo $!; wait' & sleep 60 & echo $!; wait; exec sleep 60`)
	out, err := top.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, top.Start())
	t.Cleanup(func() { _ = top.Process.Kill(); _ = top.Wait() })
	lines := bufio.NewScanner(out)
	var pids []int
	for range 2 {
		require.True(t, lines.Scan())
		pid, err := strconv.Atoi(lines.Text())
		require.NoError(t, err)
		pids = append(pids, pid)
	}
	// What is just becoming another program has no memory to speak of.
	require.Eventually(t, func() bool {
		tree, err := Tree(top.Process.Pid)
		return err == nil && len(tree) == 4 && tree[pids[0]].Resident > 0 && tree[pids[1]].Resident > 0
	}, 30*time.Second, time.Millisecond)

	require.NoError(t, EndBelow(t.Context(), top.Process.Pid))
	require.Eventually(t, func() bool {
		for _, pid := range pids {
			if s, err := Read(pid); err == nil && !s.Dead {
				return false
			}
		}
		return true
	}, 30*time.Second, time.Millisecond)
	s, err := Read(top.Process.Pid)
	require.NoError(t, err)
	require.False(t, s.Dead)
}
