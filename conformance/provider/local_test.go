//go:build linux

package provider_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local"
	"github.com/isthmus/isthmus/adapters/local/images"
	"github.com/isthmus/isthmus/conformance/provider"
)

// programs are the variables that name the binaries which go into boxes. TestMain builds them.
const (
	envEnvd    = "PROVIDER_TEST_ENVD"
	envSudo    = "PROVIDER_TEST_SUDO"
	envIsthmus = "PROVIDER_TEST_ISTHMUS"
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "isthmus-provider-")
	if err != nil {
		panic(err)
	}
	code := 1
	if err := build(dir); err != nil {
		fmt.Fprintln(os.Stderr, "provider:", err)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// build makes the binaries that go into boxes.
func build(dir string) error {
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	for program, variable := range map[string]string{"envd": envEnvd, "sudo": envSudo, "isthmus": envIsthmus} {
		if os.Getenv(variable) != "" {
			continue // one that was built before
		}
		path := filepath.Join(dir, program)
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "../../cmd/"+program)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w: %s", program, err, out)
		}
		os.Setenv(variable, path)
	}
	return nil
}

// secrets are those of a box, as the fleet would derive them.
func secrets(boxID string) (transport, control string) {
	return "transport of " + boxID, "control of " + boxID
}

// TestLocal runs the suite on this machine's own sandboxes.
func TestLocal(t *testing.T) {
	if os.Getuid() != 0 {
		t.Fatal("the adapter of this machine is tested as root")
	}
	o := outside(t)
	c := local.Config{
		DataDir: t.TempDir(), EnvdPath: os.Getenv(envEnvd), SudoPath: os.Getenv(envSudo), Secrets: secrets, Images: base{root(t)},
		Resolvers: o.resolvers,
		FirstID:   0x60000000, // away from what other tests lease
	}
	open := func() (adapters.Provider, error) { return local.Open(c) }
	p, err := open()
	require.NoError(t, err)
	run(t, provider.Harness{Provider: p, Secrets: secrets, Reopen: open, Outside: o.Outside, Resources: adapters.Resources{CPU: 1, MemoryMB: 256, DiskMB: 256}})
}

// late is a deadline that a create can meet whose box gets envd by an upload, on a machine with other things to do.
const late = 10 * time.Second

// run is all that an adapter's test needs; only are the names of the cases, if not all are run.
func run(t *testing.T, h provider.Harness, only ...string) {
	t.Helper()
	s, err := provider.Open(t.Context(), h)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close(context.WithoutCancel(t.Context()))) }()
	ran := 0
	for _, c := range s.Cases() {
		if len(only) == 0 || slices.Contains(only, c.Name) {
			ran++
			t.Run(c.Name, func(t *testing.T) { c.Run(t, s) })
		}
	}
	require.GreaterOrEqual(t, ran, len(only), "cases that are not there")
}

// base gives the name base one root file system.
type base struct{ root string }

func (b base) Root(_ context.Context, name string) (local.Root, error) {
	if name != "base" && name != local.TemplateID("base") {
		return local.Root{}, adapters.Errorf(adapters.KindNotFound, "there is no template %s: there is base", name)
	}
	return local.Root{Name: "base", Layers: []string{b.root}}, nil
}

// imagesFolder is the folder of the images: the one that the environment names, as for conformance/harness, or
// one that is kept for all runs.
func imagesFolder(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("ISTHMUS_TEST_IMAGES")
	if folder == "" {
		folder = "../../.tmp/images"
	}
	folder, err := filepath.Abs(filepath.Join(folder, "images"))
	require.NoError(t, err)
	return folder
}

// root is the root file system of the base image, which is built when it is missing.
func root(t *testing.T) string {
	t.Helper()
	store, err := images.Open(imagesFolder(t), images.Options{})
	require.NoError(t, err)
	image, err := store.Resolve(images.Base)
	if err != nil {
		image, err = store.Build(t.Context(), images.Base, nil)
	}
	require.NoError(t, err)
	return image.Root
}
