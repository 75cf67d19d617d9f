//go:build linux

package local

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A user namespace of startIn belongs to the id, has the maps that root writes, and can begin in a control group
// of version 2; this process stays what it was.
func TestStartIn(t *testing.T) {
	const id = 0x6FFF0000
	before, err := capabilities()
	require.NoError(t, err)
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 65536}}
	sys := &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids, GidMappingsEnableSetgroups: true,
		Credential: &syscall.Credential{},
	}
	group := group2(t)
	if group != nil {
		sys.UseCgroupFD, sys.CgroupFD = true, int(group.Fd())
	}
	cat, err := exec.LookPath("cat")
	require.NoError(t, err)
	in, hold, err := os.Pipe()
	require.NoError(t, err)
	defer in.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	defer null.Close()
	p, err := StartIn(nil, id, func() (*os.Process, error) {
		return os.StartProcess(cat, []string{"cat"}, &os.ProcAttr{Files: []*os.File{in, null, null}, Sys: sys})
	})
	require.NoError(t, err)
	defer func() { _, _ = p.Wait() }()
	defer hold.Close()

	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", p.Pid))
	require.NoError(t, err)
	defer ns.Close()
	owner, err := unix.IoctlGetUint32(int(ns.Fd()), unix.NS_GET_OWNER_UID)
	require.NoError(t, err)
	require.Equal(t, uint32(id), owner)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid))
	require.NoError(t, err)
	require.Contains(t, string(status), fmt.Sprintf("Uid:\t%d\t%[1]d\t%[1]d\t%[1]d\n", id))
	if group != nil {
		members, err := os.ReadFile(filepath.Join(group.Name(), "cgroup.procs"))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintln(p.Pid), string(members))
	}

	threads, err := filepath.Glob("/proc/self/task/*/status")
	require.NoError(t, err)
	for _, thread := range threads {
		status, err := os.ReadFile(thread)
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(t, err)
		require.Contains(t, string(status), "Uid:\t0\t0\t0\t0\n")
		require.Contains(t, string(status), fmt.Sprintf("CapEff:\t%08x%08x\n", before[1].Effective, before[0].Effective))
	}
}

// group2 makes a control group of version 2, where there is such a tree.
func group2(t *testing.T) *os.File {
	t.Helper()
	for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(filepath.Join(mount, "cgroup.controllers")); err != nil {
			continue
		}
		path, err := os.MkdirTemp(mount, "isthmus-test-")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, os.Remove(path)) })
		group, err := os.Open(path)
		require.NoError(t, err)
		t.Cleanup(func() { _ = group.Close() })
		return group
	}
	return nil
}
