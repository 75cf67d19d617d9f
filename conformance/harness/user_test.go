package harness

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The ordinary user of the world, who has a range of subordinate ids. No machine of a reader has these numbers.
const (
	ordinary       = "isthmus-harness"
	ordinaryID     = 42420
	ordinarySubIDs = 0x6f000000
)

// privateEtc gives the world a copy of /etc, with the ordinary user and the internet's name server in it.
func privateEtc() (remove func(), err error) {
	copied, err := os.MkdirTemp("", "isthmus-etc-*")
	if err != nil {
		return nil, err
	}
	remove = func() {
		_ = syscall.Unmount("/etc", syscall.MNT_DETACH)
		_ = os.RemoveAll(copied)
	}
	if err := run("cp", "--archive", "/etc/.", copied); err != nil {
		return remove, err
	}
	id, ids := strconv.Itoa(ordinaryID), fmt.Sprintf("%s:%d:65536\n", ordinary, ordinarySubIDs)
	for name, line := range map[string]string{
		"passwd": ordinary + ":x:" + id + ":" + id + "::/nonexistent:/bin/sh\n",
		"group":  ordinary + ":x:" + id + ":\n",
		"subuid": ids,
		"subgid": ids,
	} {
		if err := appendLine(filepath.Join(copied, name), line); err != nil {
			return remove, err
		}
	}
	resolver := filepath.Join(copied, "resolv.conf")
	_ = os.Remove(resolver) // it may be a link to where a service of the host writes
	text := "nameserver " + internetAddress + "\noptions timeout:2 attempts:2\n"
	if err := os.WriteFile(resolver, []byte(text), 0o644); err != nil {
		return remove, err
	}
	return remove, syscall.Mount(copied, "/etc", "", syscall.MS_BIND, "")
}

// appendLine puts a line behind a file's last, with an end of line before it.
func appendLine(file, line string) error {
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if len(text) > 0 {
		line = strings.TrimRight(string(text), "\n") + "\n" + line
	}
	return os.WriteFile(file, []byte(line), 0o644)
}

// homeOf makes a folder that belongs to the ordinary user, with the binary and the base image in it: the image
// is unpacked once more, because the owners of its files are others for this user.
func homeOf(t *testing.T) (home, binary string) {
	t.Helper()
	home, err := os.MkdirTemp("", "isthmus-home-*")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	require.NoError(t, os.Chmod(home, 0o755))
	require.NoError(t, os.Chown(home, ordinaryID, ordinaryID))
	binary = filepath.Join(home, "isthmus")
	require.NoError(t, run("cp", top("bin", "isthmus"), binary))
	root, err := filepath.EvalSymlinks(filepath.Join(imagesFolder(), "images", "names", "base"))
	require.NoError(t, err)
	archive := filepath.Join(home, "base.tar")
	require.NoError(t, run("tar", "--create", "--numeric-owner", "--xattrs", "--file", archive, "--directory", filepath.Join(root, "root"), "."))
	require.NoError(t, os.Chmod(archive, 0o644))
	unpack := exec.Command(binary, "images", "import", "base", archive, "--data", filepath.Join(home, "data"))
	unpack.Dir, unpack.SysProcAttr = home, asOrdinary()
	out, err := unpack.CombinedOutput()
	require.NoError(t, err, "importing the image as an ordinary user: %s", out)
	require.NoError(t, os.Remove(archive))
	return home, binary
}

// delegate makes control groups that belong to the ordinary user, as a service manager does, in the version that this
// machine's controllers are on, and returns them. They go when the test has ended.
func delegate(t *testing.T) []string {
	t.Helper()
	const name = "isthmus-harness"
	var groups []string
	if controllers, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers"); err == nil && strings.Contains(string(controllers), "memory") {
		require.NoError(t, os.WriteFile("/sys/fs/cgroup/cgroup.subtree_control", []byte("+memory +cpu +pids"), 0))
		groups = []string{"/sys/fs/cgroup/" + name}
	} else {
		for _, controller := range []string{"memory", "cpu", "cpuacct", "pids", "freezer"} {
			groups = append(groups, filepath.Join("/sys/fs/cgroup", controller, name))
		}
	}
	for _, group := range groups {
		require.NoError(t, os.MkdirAll(group, 0o755))
		t.Cleanup(func() { assert.NoError(t, removeGroups(group)) })
		require.NoError(t, os.Chown(group, ordinaryID, ordinaryID))
		for _, file := range []string{"cgroup.procs", "cgroup.subtree_control", "cgroup.threads", "tasks"} {
			if err := os.Chown(filepath.Join(group, file), ordinaryID, ordinaryID); !errors.Is(err, fs.ErrNotExist) {
				require.NoError(t, err)
			}
		}
	}
	return groups
}

// removeGroups removes a control group and those below it, from the deepest on.
func removeGroups(group string) error {
	entries, err := os.ReadDir(group)
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, removeGroups(filepath.Join(group, e.Name())))
		}
	}
	return errors.Join(err, os.Remove(group))
}

// enter is a command line that starts a program of a user's in control groups.
func enter(groups []string, user int, program string, args ...string) (string, []string) {
	const script = `while [ "$1" != -- ]; do echo $$ > "$1/cgroup.procs" || exit 1; shift; done; shift
exec setpriv --reuid "$0" --regid "$0" --clear-groups "$@"`
	words := append([]string{"-c", script, strconv.Itoa(user)}, groups...)
	return "sh", append(append(words, "--", program), args...)
}

// asOrdinary starts a process as the ordinary user.
func asOrdinary() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: &syscall.Credential{Uid: ordinaryID, Gid: ordinaryID}}
}
