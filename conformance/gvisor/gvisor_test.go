//go:build linux

package gvisor

import (
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local"
	"github.com/isthmus/isthmus/adapters/local/gvisor"
	"github.com/isthmus/isthmus/adapters/local/images"
	"github.com/isthmus/isthmus/conformance/provider"
	"github.com/isthmus/isthmus/envd"
)

// secrets are those of a box, as the fleet would derive them.
func secrets(boxID string) (transport, control string) {
	return "transport of " + boxID, "control of " + boxID
}

// base gives the name base one root file system.
type base struct{ root string }

func (b base) Root(_ context.Context, name string) (local.Root, error) {
	if name != "base" && name != local.TemplateID("base") {
		return local.Root{}, adapters.Errorf(adapters.KindNotFound, "there is no template %s: there is base", name)
	}
	return local.Root{Name: "base", Layers: []string{b.root}}, nil
}

// settings are those of the adapter in a folder of its own.
func settings(t *testing.T) gvisor.Config {
	t.Helper()
	top, err := filepath.Abs("../..")
	require.NoError(t, err)
	store, err := images.Open(filepath.Join(cmp.Or(os.Getenv("ISTHMUS_TEST_IMAGES"), filepath.Join(top, ".tmp", "images")), "images"), images.Options{})
	require.NoError(t, err)
	image, err := store.Resolve(images.Base)
	if err != nil {
		image, err = store.Build(t.Context(), images.Base, nil)
	}
	require.NoError(t, err)
	return gvisor.Config{
		DataDir: t.TempDir(), Runsc: filepath.Join(top, "bin", "runsc"), EnvdPath: filepath.Join(top, "bin", "envd"), SudoPath: filepath.Join(top, "bin", "sudo"),
		Secrets: secrets, Images: base{image.Root},
	}
}

// within runs a shell command in a box and returns what it said.
func within(t *testing.T, p *gvisor.Provider, box, command string) string {
	t.Helper()
	run, err := p.Exec(t.Context(), box, []string{"/bin/sh", "-c", "exec 2>&1; " + command})
	require.NoError(t, err)
	defer func() { require.NoError(t, run.Close()) }()
	require.NoError(t, run.CloseWrite())
	said, err := io.ReadAll(run)
	require.NoError(t, err)
	return strings.TrimSpace(string(said))
}

// made makes a box with small limits.
func made(t *testing.T, p *gvisor.Provider, id string) {
	t.Helper()
	transport, control := secrets(id)
	_, err := p.Create(t.Context(), adapters.Spec{
		BoxID: id, Attempt: "a", Deployment: "test", Template: adapters.Template{Name: "base"},
		Resources: adapters.Resources{CPU: 1, MemoryMB: 256, DiskMB: 64},
		Envd:      envd.Config{SandboxID: id, Transport: transport, Control: control, Deadline: time.Now().Add(10 * time.Minute)},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Destroy(context.WithoutCancel(t.Context()), id)) })
}

// The kernel that a box meets is its own and not the host's, nothing of the host shows, and its limits hold: a disk that
// is full says so, a box that eats more than its memory ends, and another one does not notice.
func TestABoxHasAKernelOfItsOwn(t *testing.T) {
	p, err := gvisor.Open(t.Context(), settings(t))
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	made(t, p, "one")
	made(t, p, "other")
	require.Contains(t, within(t, p, "one", "cat /proc/version"), "gvisor")
	require.Contains(t, within(t, p, "one", "dmesg"), "Starting gVisor")
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	require.NoError(t, err)
	require.NotContains(t, within(t, p, "one", "cat /proc/sys/kernel/random/boot_id"), strings.TrimSpace(string(boot)))
	require.NotContains(t, within(t, p, "one", "ps -e -o args; cat /proc/mounts"), "isthmus serve")
	require.Contains(t, within(t, p, "one", "dd if=/dev/zero of=/big bs=1M count=200; rm /big"), "No space left")
	require.Equal(t, "0", within(t, p, "one", "sudo -u user sudo id -u"), "sudo works inside")

	ended, err := p.Powers().Watcher.Ended("one")
	require.NoError(t, err)
	_ = within(t, p, "one", "python3 -c 'x = [bytearray(64 << 20) for _ in range(64)]'")
	select {
	case <-ended:
	case <-time.After(time.Minute):
		require.Contains(t, within(t, p, "one", "echo alive"), "alive", "the command alone may have been ended")
	}
	require.Equal(t, "up", within(t, p, "other", "echo up"))
}

func TestSuite(t *testing.T) {
	c := settings(t)
	open := func() (adapters.Provider, error) { return gvisor.Open(t.Context(), c) }
	p, err := open()
	require.NoError(t, err)
	s, err := provider.Open(t.Context(), provider.Harness{
		Provider: p, Secrets: secrets, Reopen: open, AtOnce: 4, Soon: 12 * time.Second, Resources: adapters.Resources{CPU: 1, MemoryMB: 256, DiskMB: 256},
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close(context.WithoutCancel(t.Context()))) }()
	for _, one := range s.Cases() {
		t.Run(one.Name, func(t *testing.T) { one.Run(t, s) })
	}
}
