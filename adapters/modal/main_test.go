//go:build linux

package modal_test

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters/local/images"
	"github.com/isthmus/isthmus/conformance/simulators/machine"
	simulated "github.com/isthmus/isthmus/conformance/simulators/modal"
)

// programs is the folder with the programs that go into boxes. TestMain builds them.
const programs = "MODAL_TEST_PROGRAMS"

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "isthmus-modal-")
	if err != nil {
		panic(err)
	}
	code := 1
	if err := build(dir); err != nil {
		fmt.Fprintln(os.Stderr, "modal:", err)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func build(dir string) error {
	os.Setenv(programs, dir)
	for _, program := range []string{"envd", "sudo"} {
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, program), "../../cmd/"+program)
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
		folder = "../../.tmp/images"
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

// start starts a server with a cloud of its own, and looks that both leave nothing when the test has ended.
func start(t *testing.T, change func(*simulated.Config)) *simulated.Server {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("simulated clouds are tested as root")
	}
	folder, err := machine.Folder(imagesFolder(t))
	require.NoError(t, err)
	cloud, err := machine.New(t.Context(), machine.Config{
		Dir: filepath.Join(t.TempDir(), "cloud"), Images: folder, FirstID: 0x56000000,
		EnvdPath: filepath.Join(os.Getenv(programs), "envd"), SudoPath: filepath.Join(os.Getenv(programs), "sudo"),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cloud.Close()) })
	c := simulated.Config{Cloud: cloud, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
	if change != nil {
		change(&c)
	}
	s, err := simulated.Start(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}
