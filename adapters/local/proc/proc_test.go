//go:build linux

package proc

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestOpenProcess(t *testing.T) {
	child := exec.Command("cat")
	hold, err := child.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	p, err := Identify(child.Process.Pid)
	require.NoError(t, err)
	fd, err := p.Open()
	require.NoError(t, err)
	require.NoError(t, unix.Close(fd))

	other := p
	other.Start++
	_, err = other.Open()
	require.ErrorIs(t, err, os.ErrNotExist, "the pid is another process's")

	require.NoError(t, hold.Close())
	require.NoError(t, child.Wait())
	_, err = p.Open()
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = ID{}.Open()
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A process of which nothing can be learnt at the moment has not ended.
func TestOpenProcessWithoutDescriptors(t *testing.T) {
	p, err := Identify(os.Getpid())
	require.NoError(t, err)
	var was unix.Rlimit
	require.NoError(t, unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &was))
	none := unix.Rlimit{Max: was.Max}
	require.NoError(t, unix.Prlimit(0, unix.RLIMIT_NOFILE, &none, nil))
	_, err = p.Open()
	require.NoError(t, unix.Prlimit(0, unix.RLIMIT_NOFILE, &was, nil))
	require.ErrorIs(t, err, unix.EMFILE)
	require.NotErrorIs(t, err, os.ErrNotExist)
}
