//go:build linux

package local_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local"
)

func TestMemoryIsLimited(t *testing.T) {
	l := open(t)
	id := create(t, l, func(s *adapters.Spec) { s.Resources.MemoryMB = 128 })
	r := sh(t, l, id, "user", `python3 -c 'b = bytearray(400 << 20)'; echo $?`)
	require.Equal(t, "137\n", r.stdout, r.stderr)
	require.Equal(t, "fine\n", sh(t, l, id, "user", "echo fine").stdout, "the box survives it")
}

func TestProcessesAreLimited(t *testing.T) {
	l := open(t, func(c *local.Config) { c.Processes = 64 })
	id := create(t, l)
	for _, user := range []string{"user", "root"} {
		r := sh(t, l, id, user, `exec python3 -c '
import os, time
children = []
try:
    while len(children) < 400:
        pid = os.fork()
        if pid == 0:
            time.sleep(3600)
        children.append(pid)
except BlockingIOError:
    print("refused after", 32 < len(children) < 70, flush=True)
for pid in children:
    os.kill(pid, 9)
for pid in children:
    os.waitpid(pid, 0)'`)
		require.Contains(t, r.stdout, "refused after True", r.stderr)
		require.Equal(t, "fine\n", sh(t, l, id, user, "echo fine").stdout)
	}
}

// A box full of processes keeps answering: its envd is not counted among them.
func TestAForkBombHarmsItselfOnly(t *testing.T) {
	l := open(t, func(c *local.Config) { c.Processes = 64 })
	id := create(t, l)
	for _, user := range []string{"user", "root"} {
		// The nap is begun before there is no room for it.
		r := sh(t, l, id, user, `sleep 0.3 & nap=$!
setsid sh -c 'exec > /dev/null 2>&1 < /dev/null
while :; do sleep 3600 & done' & wait $nap`)
		require.Zero(t, r.code, r.stderr)
	}
	require.NoError(t, l.Extend(t.Context(), id, time.Now().Add(time.Hour)))
	_, err := l.Measure(t.Context(), id)
	require.NoError(t, err)
	b, err := l.Get(t.Context(), id)
	require.NoError(t, err)
	require.True(t, b.Alive)
}

func TestTheDiskIsLimited(t *testing.T) {
	l := open(t)
	id := create(t, l, func(s *adapters.Spec) { s.Resources.DiskMB = 64 })
	r := sh(t, l, id, "user", "head -c 200M /dev/zero > big; df -m --output=size / | tail -1")
	require.Contains(t, r.stderr, "No space left on device")
	require.NotEmpty(t, strings.TrimSpace(r.stdout))
	s, err := l.Measure(t.Context(), id)
	require.NoError(t, err)
	require.InDelta(t, 64<<20, s.DiskTotal, 8<<20)
	require.Greater(t, s.DiskUsed, int64(40<<20))
	require.Zero(t, sh(t, l, id, "user", "rm big").code)
}

func TestMeasureTellsWhatIsUsed(t *testing.T) {
	l := open(t)
	id := create(t, l)
	before, err := l.Measure(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, 1, before.CPUCount)
	require.Equal(t, int64(256<<20), before.MemTotal)
	r := sh(t, l, id, "user", `python3 -c 'for i in range(3000000): pass'; head -c 20M /dev/urandom > file; sync`)
	require.Zero(t, r.code, r.stderr)
	after, err := l.Measure(t.Context(), id)
	require.NoError(t, err)
	require.Greater(t, after.CPUTime, before.CPUTime)
	require.Positive(t, after.MemUsed)
	if os.Getuid() != 0 {
		return // the file system is everybody's
	}
	require.GreaterOrEqual(t, after.DiskUsed-before.DiskUsed, int64(20<<20))
}
