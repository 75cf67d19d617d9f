package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/envd"
)

func TestAWaitThatIsEndedFromOutsideDoesNotEndWell(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), build(t), "wait", "--control-sum", envd.ControlSum("secret"), "--listen", "127.0.0.1:0")
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { // it listens for signals first
		open, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "fd", "*"))
		for _, one := range open {
			target, _ := os.Readlink(one)
			if strings.HasPrefix(target, "socket:") {
				return true
			}
		}
		return err != nil
	}, 30*time.Second, 10*time.Millisecond, "it does not listen")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Error(t, cmd.Wait())
	require.Equal(t, 143, cmd.ProcessState.ExitCode())
}
