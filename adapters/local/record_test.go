//go:build linux

package local

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestAProcessThatIsNotRecordedLeavesNoDescriptor(t *testing.T) {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	require.NoError(t, err)
	m := maker{path: filepath.Join(t.TempDir(), "none")}
	_, err = m.recorded(&started{process: &os.Process{Pid: os.Getpid()}, pidfd: fd})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	require.ErrorIs(t, err, os.ErrNotExist)
}
