//go:build linux

package local_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters/local"
)

// remains lists what the machine still has of an adapter's boxes: processes with their user ids, mounts,
// loop devices, control groups, folders. It looks from outside, at the kernel and not at the adapter.
func remains(t *testing.T, c local.Config) []string {
	t.Helper()
	found := processes(t, c.FirstID)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, c.DataDir) {
			found = append(found, "mount "+line)
		}
	}
	for _, loop := range glob(t, "/sys/block/loop*/loop/backing_file") {
		if held, err := os.ReadFile(loop); err == nil && strings.Contains(string(held), c.DataDir) {
			found = append(found, "loop device "+loop)
		}
	}
	for _, pattern := range []string{"boxes/*", "ids/*", "probe-*"} {
		found = append(found, glob(t, filepath.Join(c.DataDir, "local", pattern))...)
	}
	return found
}

// groups lists the control groups of a box.
func groups(t *testing.T, id string) []string {
	t.Helper()
	return append(glob(t, "/sys/fs/cgroup/*/isthmus/"+id), glob(t, "/sys/fs/cgroup/isthmus/"+id)...)
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	require.NoError(t, err)
	return found
}

// processes lists processes whose user is one of a test's ids.
func processes(t *testing.T, first uint32) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	span := uint32(ranges * 65536)
	if os.Getuid() != 0 {
		span = 65535 // the ordinary user's own; behind it are other users'
	}
	var found []string
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue
		}
		uid := info.Sys().(*syscall.Stat_t).Uid
		// What is dead and another process's child is that one's to collect: the machine's init takes its time.
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") && !strings.Contains(string(stat), ") Z "+strconv.Itoa(os.Getpid())+" ") {
			continue
		}
		if uid >= first && uid < first+span {
			name, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
			found = append(found, "process "+e.Name()+" "+string(name))
		}
	}
	return found
}
