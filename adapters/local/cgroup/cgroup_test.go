//go:build linux

package cgroup

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseFindsTheHierarchies(t *testing.T) {
	v2, v1 := parse(`31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:5 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`)
	require.Equal(t, "/sys/fs/cgroup/unified", v2)
	require.Equal(t, "/sys/fs/cgroup/cpu,cpuacct", v1["cpuacct"])
	require.Equal(t, "/sys/fs/cgroup/cpu,cpuacct", v1["cpu"])
	require.Equal(t, "/sys/fs/cgroup/memory", v1["memory"])
}

func TestUnenforced(t *testing.T) {
	require.Equal(t, []string{"memory", "cpu", "pids"}, (*Tree)(nil).Unenforced())
	require.Empty(t, (&Tree{version: 2}).Unenforced())
	require.Equal(t, []string{"pids"}, (&Tree{version: 1, roots: map[string]string{"memory": "m", "cpu": "c"}}).Unenforced())
}

// A version 2 tree of plain files: what is written where is what counts.
func TestLimitsOfVersion2(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	write("cgroup.controllers", "cpuset cpu io memory pids\n")
	require.True(t, controlled(root))
	require.NoError(t, prepare2(root))
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root, folder, name))
		require.NoError(t, err)
		return string(text)
	}
	require.Equal(t, "+memory +cpu +pids", read("cgroup.subtree_control"))

	tree := &Tree{version: 2, roots: map[string]string{"": filepath.Join(root, folder)}}
	g := tree.Plan("box")
	require.NoError(t, g.Make(Limits{MemoryBytes: 1 << 20, CPUs: 2, Processes: 50}))
	require.Equal(t, "1048576", read("box/memory.max"))
	require.Equal(t, "0", read("box/memory.swap.max"))
	require.Equal(t, "50", read("box/pids.max"))
	require.Equal(t, "200000 100000", read("box/cpu.max"))

	write(folder+"/box/cpu.stat", "usage_usec 1500\nuser_usec 1000\n")
	write(folder+"/box/memory.current", "5000\n")
	write(folder+"/box/memory.stat", "anon 1000\nfile 4000\ninactive_file 3000\n")
	u, err := g.Usage()
	require.NoError(t, err)
	require.Equal(t, Usage{CPU: 1500 * time.Microsecond, Memory: 2000, Cache: 4000}, u)
	dir, err := g.Open()
	require.NoError(t, err)
	require.NoError(t, dir.Close())
}

// A real group of whatever this machine has.
func TestAGroupIsMadeUsedAndRemoved(t *testing.T) {
	tree, err := Find()
	require.NoError(t, err, "run this test where control groups can be made")
	g := tree.Plan("test" + strconv.Itoa(os.Getpid()))
	require.NoError(t, g.Make(Limits{MemoryBytes: 64 << 20, CPUs: 1, Processes: 10}))
	require.NoError(t, g.Make(Limits{MemoryBytes: 64 << 20, CPUs: 1, Processes: 10}), "what is there is used")
	t.Cleanup(func() { require.NoError(t, g.Remove(context.Background())) })
	cmd := exec.Command("sleep", "60")
	startIn(t, g, cmd)
	u, err := g.Usage()
	require.NoError(t, err)
	require.Less(t, u.Memory, int64(64<<20))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.Error(t, g.Remove(ctx), "it is in use")
	g.Thaw()
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.NoError(t, g.Remove(t.Context()))
	require.NoError(t, g.Remove(t.Context()), "twice is fine")
	require.NoError(t, (*Group)(nil).Remove(t.Context()))
}

// startIn starts a command in a group, by a thread that goes on to the group above.
func startIn(t *testing.T, g *Group, cmd *exec.Cmd) {
	t.Helper()
	if g.Version == 2 {
		require.NoError(t, cmd.Start())
		require.NoError(t, move(g.Paths[""], cmd.Process.Pid))
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	require.NoError(t, g.Enter())
	require.NoError(t, cmd.Start())
	for _, path := range g.Paths {
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "tasks"), []byte("0"), 0))
		members, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		require.NoError(t, err)
		require.Contains(t, strings.Fields(string(members)), strconv.Itoa(cmd.Process.Pid), path)
	}
}

func TestOwnGroup(t *testing.T) {
	const text = "12:cpu,cpuacct:/user.slice\n5:memory:/delegated/to:me\n1:name=systemd:/init.scope\n0::/\n"
	for controller, want := range map[string]string{
		"cpu": "/user.slice", "cpuacct": "/user.slice", "memory": "/delegated/to:me", "pids": "/", "name=systemd": "/init.scope",
	} {
		require.Equal(t, want, ownGroup(text, controller), controller)
	}
}

// A thread that started what is in a group of version 1 leaves it a moment later: until then its process is listed there.
func TestKillSparesThisProcess(t *testing.T) {
	tree, err := Find()
	require.NoError(t, err)
	if tree.version == 2 {
		return // a process is in one group as a whole there
	}
	g := tree.Plan("spared" + strconv.Itoa(os.Getpid()))
	require.NoError(t, g.Make(Limits{MemoryBytes: 1 << 30, CPUs: 1, Processes: 1000}))
	runtime.LockOSThread()
	require.NoError(t, g.Enter())
	g.Kill()
	for _, path := range g.Paths {
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "tasks"), []byte("0"), 0))
	}
	runtime.UnlockOSThread()
	require.NoError(t, g.Remove(t.Context()))
}
