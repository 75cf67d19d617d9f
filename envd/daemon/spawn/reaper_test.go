package spawn

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asInit makes the test binary play PID 1 instead of running tests.
const asInit = "ISTHMUS_TEST_AS_INIT"

func TestMain(m *testing.M) {
	if os.Getenv(asInit) != "" {
		if err := playInit(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestPID1CollectsOrphansAndNeverMixesExitCodes(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), asInit+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// playInit runs commands that leave orphans, from several goroutines.
func playInit() error {
	if os.Getpid() != 1 {
		return fmt.Errorf("pid is %d", os.Getpid())
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount proc: %w", err)
	}
	r := NewReaper(true)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go r.Run(ctx)
	faults := make(chan error, 8)
	var workers sync.WaitGroup
	for worker := range 8 {
		workers.Go(func() {
			for i := range 20 {
				if err := orphanMaker(r, (worker*20+i)%200); err != nil {
					faults <- err
					return
				}
			}
		})
	}
	workers.Wait()
	close(faults)
	if err := <-faults; err != nil {
		return err
	}
	return noChildren()
}

func orphanMaker(r *Reaper, code int) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	p, err := r.Start(Command{
		Path: "/bin/sh", Args: []string{"sh", "-c", fmt.Sprintf("(true &); exit %d", code)},
		Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/", Stdio: [3]*os.File{null, null, null},
	})
	if err != nil {
		return err
	}
	<-p.Done()
	if got := p.Status().ExitStatus(); got != code {
		return fmt.Errorf("exit code %d instead of %d", got, code)
	}
	if err := p.Signal(syscall.SIGKILL); err != os.ErrProcessDone {
		return fmt.Errorf("signal after the end: %v", err)
	}
	return nil
}

// noChildren waits until PID 1 is alone.
func noChildren() error {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		left, err := os.ReadFile("/proc/1/task/1/children")
		if err != nil {
			return err
		}
		entries, err := os.ReadDir("/proc")
		if err != nil {
			return err
		}
		others := 0
		for _, e := range entries {
			if name := e.Name(); name[0] >= '1' && name[0] <= '9' && name != "1" {
				others++
			}
		}
		if strings.TrimSpace(string(left)) == "" && others == 0 {
			return nil
		}
	}
	return fmt.Errorf("processes are left over")
}

func TestLook(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/plain", nil, 0o644))
	require.NoError(t, os.Mkdir(dir+"/folder", 0o755))
	require.NoError(t, os.WriteFile(dir+"/tool", nil, 0o755))
	for _, c := range []struct {
		name, path, dir, want string
		err                   error
	}{
		{name: "tool", path: "/no:" + dir, want: dir + "/tool"},
		{name: "tool", path: ":/no", dir: dir, want: dir + "/tool"},
		{name: "./any", path: dir, want: "./any"},
		{name: "plain", path: dir, err: syscall.EACCES},
		{name: "folder", path: dir, err: syscall.ENOENT},
		{name: "missing", path: dir, err: syscall.ENOENT},
		{name: "", path: dir, err: syscall.ENOENT},
		{name: "tool", path: "", err: syscall.ENOENT},
	} {
		got, err := Look(c.name, c.path, c.dir)
		require.Equal(t, c.err, err, "%+v", c)
		require.Equal(t, c.want, got, "%+v", c)
	}
}

func TestSearchable(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o710))
	require.NoError(t, os.Mkdir(dir+"/in", 0o755))
	gid := uint32(os.Getgid())
	stranger := &syscall.Credential{Uid: 54321, Gid: 54321}
	// The folders above are the test's own and closed to strangers: open them.
	for up := dir; len(up) > len(os.TempDir()); up = up[:strings.LastIndexByte(up, '/')] {
		if up != dir {
			require.NoError(t, os.Chmod(up, 0o755))
		}
	}
	require.True(t, Searchable(dir+"/in", nil))
	require.True(t, Searchable(dir+"/in", &syscall.Credential{Uid: uint32(os.Getuid())}))
	require.True(t, Searchable(dir+"/in", &syscall.Credential{Uid: 54321, Gid: 1, Groups: []uint32{gid}}))
	require.False(t, Searchable(dir+"/in", stranger))
	require.False(t, Searchable(dir+"/missing", nil))
	require.NoError(t, os.Chmod(dir, 0o755))
	require.True(t, Searchable(dir+"/in", stranger))
}
