//go:build linux

package machine_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters/local/images"
	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// programs is the folder with the programs that go into boxes. TestMain builds them.
const programs = "MACHINE_TEST_PROGRAMS"

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "isthmus-machine-")
	if err != nil {
		panic(err)
	}
	code := 1
	if err := build(dir); err != nil {
		fmt.Fprintln(os.Stderr, "machine:", err)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func build(dir string) error {
	os.Setenv(programs, dir)
	for _, program := range []string{"envd", "sudo"} {
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, program), "../../../cmd/"+program)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w: %s", program, err, out)
		}
	}
	return nil
}

// imagesFolder has the base image, which is built when it is missing.
func imagesFolder(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("ISTHMUS_TEST_IMAGES")
	if folder == "" {
		folder = "../../../.tmp/images"
	}
	folder = filepath.Join(folder, "images")
	store, err := images.Open(folder, images.Options{})
	require.NoError(t, err)
	if _, err = store.Resolve(images.Base); err != nil {
		_, err = store.Build(t.Context(), images.Base, nil)
	}
	require.NoError(t, err)
	return folder
}

// configuration is that of a cloud in a folder of the test's own.
func configuration(t *testing.T) machine.Config {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("simulated clouds are tested as root")
	}
	folder, err := machine.Folder(imagesFolder(t))
	require.NoError(t, err)
	return machine.Config{
		Dir: filepath.Join(t.TempDir(), "cloud"), Images: folder,
		EnvdPath: filepath.Join(os.Getenv(programs), "envd"), SudoPath: filepath.Join(os.Getenv(programs), "sudo"),
	}
}

// open opens a cloud, and closes it when the test has ended.
func open(t *testing.T) *machine.Cloud {
	t.Helper()
	c, err := machine.New(t.Context(), configuration(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}
