//go:build linux

package local_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// ordinary is the user of these tests, made by them and removed afterwards.
const ordinary = "isthmus-test"

// roleUser makes the test binary run its tests as that user, once it has mounted the root file system in the
// user's ids.
const roleUser = "user"

// TestAsAnOrdinaryUser runs the tests of this package that do not need limits again, as a user who has
// nothing but a range of subordinate ids.
func TestAsAnOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		return // this is that run
	}
	u := addUser(t)
	home, err := os.MkdirTemp("", "isthmus-user-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	require.NoError(t, os.Chmod(home, 0o755))
	require.NoError(t, os.Chown(home, u, u))
	mount := filepath.Join(home, "root")
	require.NoError(t, os.Mkdir(mount, 0o755))
	binary := filepath.Join(home, "local.test")
	require.NoError(t, exec.Command("cp", os.Args[0], binary).Run())
	require.NoError(t, os.Chmod(binary, 0o755))

	cmd := exec.Command(binary, "-test.v", "-test.run",
		"^(TestABox|TestEverythingOf|TestASecond|TestACancelled|TestManyBoxes|TestTheDeadline|TestTheJournal|TestAFacade|TestBoxesOutlive|TestProcessesAre|TestMeasure|TestWhatABox|TestSudo|TestTheInternet|TestTheNetwork|TestRulesThat|TestAPause|TestPause|TestBoxesOfA)")
	cmd.Env = append(os.Environ(), envRole+"="+roleUser, envMount+"="+mount, envUID+"="+strconv.Itoa(u), "TMPDIR="+home, "HOME="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Run(), "%s", &out)
	require.Contains(t, out.String(), "--- PASS: TestABoxLives")
	require.NotContains(t, out.String(), "--- SKIP")
	t.Log(out.String())
}

const (
	envMount = "LOCAL_TEST_MOUNT"
	envUID   = "LOCAL_TEST_UID"
)

// addUser makes the ordinary user with a range of subordinate ids, and returns its id.
func addUser(t *testing.T) int {
	t.Helper()
	if _, err := user.Lookup(ordinary); err != nil {
		out, err := exec.Command("useradd", "--no-create-home", ordinary).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	t.Cleanup(func() { _ = exec.Command("userdel", ordinary).Run() })
	u, err := user.Lookup(ordinary)
	require.NoError(t, err)
	id, err := strconv.Atoi(u.Uid)
	require.NoError(t, err)
	return id
}

// becomeUser runs as root in a mount namespace of its own: it shows the root file system in the user's ids,
// as an image that the user unpacked would have them, and goes on as the user.
func becomeUser() error {
	uid, err := strconv.Atoi(os.Getenv(envUID))
	if err != nil {
		return err
	}
	first, err := subordinate()
	if err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	at := os.Getenv(envMount)
	if err := mountAs(os.Getenv(envRoot), at, uid, first); err != nil {
		return fmt.Errorf("mount the root file system: %w", err)
	}
	for _, step := range []func() error{
		func() error { return syscall.Setgroups(nil) },
		func() error { return syscall.Setresgid(uid, uid, uid) },
		func() error { return syscall.Setresuid(uid, uid, uid) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("become the user: %w", err)
		}
	}
	for name, value := range map[string]string{envRole: "", envRoot: at, envFirst: strconv.Itoa(first)} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return syscall.Exec(os.Args[0], os.Args, os.Environ())
}

// subordinate is the first of the user's subordinate ids.
func subordinate() (int, error) {
	text, err := os.ReadFile("/etc/subuid")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Split(line, ":"); fields[0] == ordinary {
			return strconv.Atoi(fields[1])
		}
	}
	return 0, fmt.Errorf("%s has no subordinate ids", ordinary)
}

// mountAs shows a tree whose root is the user and whose other ids are subordinate ones.
func mountAs(tree, at string, uid, first int) error {
	holder := exec.Command("sleep", "60")
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}, {ContainerID: 1, HostID: first, Size: 65535}}
	holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids, Pdeathsig: syscall.SIGKILL}
	if err := holder.Start(); err != nil {
		return err
	}
	defer func() { _ = holder.Process.Kill(); _ = holder.Wait() }()
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", holder.Process.Pid))
	if err != nil {
		return err
	}
	defer ns.Close()
	// The maps are written by now: Start returns after the exec.
	fd, err := unix.OpenTree(unix.AT_FDCWD, tree, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(ns.Fd())}); err != nil {
		return err
	}
	return unix.MoveMount(fd, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
}
