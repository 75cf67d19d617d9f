package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/server/config"
	"github.com/isthmus/isthmus/server/fleet"
)

// finding is one line of the doctor's report.
type finding struct {
	what string
	good bool
	// must says that nothing works without it.
	must   bool
	detail string
	advice string // what to do when it is not good
}

func doctorCommand(where *location) *cobra.Command {
	var isolation string
	cmd := &cobra.Command{
		Use: "doctor", Short: "Say what this machine can do, what is missing, and what to do", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := where.read()
			if err != nil {
				return err
			}
			if isolation != "" {
				c.Local.Isolation = isolation
			}
			c.Local.ProcessAsRoot = true // one look harms nothing
			if err := c.Check(); err != nil {
				return err
			}
			failed := 0
			for _, look := range []func(context.Context, config.Config) finding{
				kernel, user, userNamespaces, controlGroups, loopDevices, dataFolder, imageBuilder, sandbox,
			} {
				f := look(cmd.Context(), c)
				fmt.Fprintln(cmd.OutOrStdout(), f)
				if f.must && !f.good {
					failed++
				}
			}
			for _, f := range clusters(c) {
				fmt.Fprintln(cmd.OutOrStdout(), f)
				if !f.good {
					failed++
				}
			}
			if failed > 0 {
				return fmt.Errorf("%d things are missing without which no sandbox runs here", failed)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&isolation, "isolation", "", "look at another tier: gvisor, or process, which is none")
	return cmd
}

// String is the line.
func (f finding) String() string {
	mark := "ok     "
	switch {
	case !f.good && f.must:
		mark = "MISSING"
	case !f.good:
		mark = "weaker "
	}
	text := fmt.Sprintf("%s  %-18s %s", mark, f.what, f.detail)
	if !f.good {
		text += "\n         -> " + f.advice
	}
	return text
}

func kernel(_ context.Context, c config.Config) finding {
	var name unix.Utsname
	_ = unix.Uname(&name)
	release := unix.ByteSliceToString(name.Release[:])
	oldest := oldestKernel(os.Getuid() == 0, c.Local.Isolation)
	return finding{what: "kernel", must: true, good: newEnough(release, oldest),
		detail: runtime.GOOS + " " + release + " " + runtime.GOARCH, advice: fmt.Sprintf("Linux 5.%d or newer is needed", oldest)}
}

// oldestKernel is the minor version of Linux 5 that sandboxes need: as root their layers are id-mapped below
// an overlay.
func oldestKernel(root bool, isolation string) int {
	if root && isolation == "" {
		return 19
	}
	return 13
}

func newEnough(release string, oldest int) bool {
	var major, minor int
	_, _ = fmt.Sscanf(release, "%d.%d", &major, &minor)
	return major > 5 || (major == 5 && minor >= oldest)
}

func user(context.Context, config.Config) finding {
	if os.Getuid() == 0 {
		return finding{what: "user", good: true, detail: "root: every sandbox gets a range of user ids of its own"}
	}
	f := finding{what: "user", must: true, detail: fmt.Sprintf("uid %d", os.Getuid()),
		advice: "install uidmap (newuidmap) and give this user a range: `usermod --add-subuids 100000-165535 --add-subgids 100000-165535 NAME`, or run as root"}
	_, err := exec.LookPath("newuidmap")
	ranges, readErr := os.ReadFile("/etc/subuid")
	f.good = err == nil && readErr == nil && len(strings.TrimSpace(string(ranges))) > 0
	return f
}

func userNamespaces(context.Context, config.Config) finding {
	most, err := os.ReadFile("/proc/sys/user/max_user_namespaces")
	text := strings.TrimSpace(string(most))
	return finding{what: "user namespaces", must: true, good: err == nil && text != "0", detail: "user.max_user_namespaces = " + text,
		advice: "set the sysctl user.max_user_namespaces to more than 0"}
}

func controlGroups(context.Context, config.Config) finding {
	f := finding{what: "control groups", detail: "limits on memory, cpu and processes",
		advice: "run as root, or under a service manager that delegates a cgroup: without it those limits are not enforced"}
	for _, path := range []string{"/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/memory/cgroup.procs"} {
		if unix.Access(path, unix.W_OK) == nil {
			f.good = true
		}
	}
	return f
}

func loopDevices(context.Context, config.Config) finding {
	return finding{what: "loop devices", good: unix.Access("/dev/loop-control", unix.W_OK) == nil, detail: "a limit on disk",
		advice: "load the module `loop` and run as root: without it a sandbox can fill the data folder's disk"}
}

func dataFolder(_ context.Context, c config.Config) finding {
	f := finding{what: "data folder", must: true, detail: c.Data, advice: "put it on ext4, xfs or btrfs: an overlay cannot hold another one"}
	dir := c.Data
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		dir = filepath.Dir(filepath.Clean(dir))
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		f.advice = "it cannot be used: " + err.Error()
		return f
	}
	free := int(st.Bavail * uint64(st.Bsize) >> 20)
	f.good = st.Type != unix.OVERLAYFS_SUPER_MAGIC
	f.detail += fmt.Sprintf(", %.1f GiB free", float64(free)/1024)
	if f.good && free < c.Limits.KeepFreeMB {
		f.good, f.advice = false, fmt.Sprintf("make room: no sandbox is made while less than %d MiB are free (limits.keep_free_mb)", c.Limits.KeepFreeMB)
	}
	return f
}

func imageBuilder(context.Context, config.Config) finding {
	f := finding{what: "image builder", detail: "mmdebstrap builds the base image", advice: "install mmdebstrap, or bring an image in with `isthmus images import`"}
	_, err := exec.LookPath("mmdebstrap")
	f.good = err == nil
	return f
}

// sandbox makes a real one, in a folder of its own, so that a server that runs is not in the way.
func sandbox(_ context.Context, c config.Config) finding {
	f := finding{what: "a real sandbox", must: true}
	err := trySandbox(c, &f)
	f.good = err == nil
	if err != nil {
		f.detail, f.advice = "cannot be made", err.Error()
	}
	return f
}

func trySandbox(c config.Config, f *finding) error {
	parent := c.Data
	if _, err := os.Stat(parent); err != nil {
		parent = filepath.Dir(filepath.Clean(parent))
	}
	dir, err := os.MkdirTemp(parent, ".doctor-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	c.Data = dir
	secrets, err := fleet.LoadSecrets(filepath.Join(dir, "key"))
	if err != nil {
		return err
	}
	provider, err := openMachine(c, config.Pool{Name: localPool}, secrets, nil)
	if err != nil {
		return err
	}
	d := provider.Describe()
	f.detail = d.Tier
	if len(d.Unenforced) > 0 {
		f.detail += "; not enforced: " + strings.Join(d.Unenforced, ", ")
	}
	return provider.Close()
}
