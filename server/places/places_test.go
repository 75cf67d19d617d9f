//go:build linux

package places

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/bootstrap"
	"github.com/isthmus/isthmus/adapters/e2b"
	"github.com/isthmus/isthmus/adapters/local/images"
	"github.com/isthmus/isthmus/conformance/boxes"
	"github.com/isthmus/isthmus/conformance/wire"
	"github.com/isthmus/isthmus/server"
	"github.com/isthmus/isthmus/server/admin"
	"github.com/isthmus/isthmus/server/config"
	"github.com/isthmus/isthmus/server/fleet"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/store/kv/badger"
)

// envEnvd names the program that TestMain builds for the boxes.
const envEnvd = "PLACES_TEST_ENVD"

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "isthmus-places-")
	if err != nil {
		panic(err)
	}
	path := filepath.Join(dir, "envd")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "../../cmd/envd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("build envd: %v: %s", err, out))
	}
	os.Setenv(envEnvd, path)
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// port is the one port of a box.
const port = 49980

// place makes a provider; secrets are those of the facade in front of it.
type place func(t *testing.T, secrets fleet.Secrets) adapters.Provider

func onePort(t *testing.T, secrets fleet.Secrets) adapters.Provider {
	return booted(boxes.OnePort{Cloud: cloud(t), Port: port}, secrets)
}

func onlyExec(t *testing.T, secrets fleet.Secrets) adapters.Provider {
	return booted(boxes.OnlyExec{Cloud: cloud(t)}, secrets)
}

// another is another Isthmus, whose boxes have nothing but exec.
func another(t *testing.T, _ fleet.Secrets) adapters.Provider {
	where := isthmus(t, onlyExec)
	p, err := e2b.New(e2b.Config{
		APIURL: where.APIURL, SandboxURL: where.SandboxURL, Key: func() (string, error) { return where.APIKey, nil },
		Templates: []e2b.Template{{Name: "base"}},
	})
	require.NoError(t, err)
	return p
}

func booted(bare bootstrap.Bare, secrets fleet.Secrets) adapters.Provider {
	return bootstrap.New(bare, bootstrap.Config{
		Port: port, Envd: func() (io.ReadCloser, error) { return os.Open(os.Getenv(envEnvd)) },
		Secrets: func(boxID string) (string, string) { return secrets.Transport(boxID), secrets.Control(boxID) },
	})
}

// cloud is the boxes of one test.
func cloud(t *testing.T) *boxes.Cloud {
	t.Helper()
	require.Zero(t, os.Getuid(), "the boxes of these tests are made as root")
	folder := os.Getenv("ISTHMUS_TEST_IMAGES")
	if folder == "" {
		folder = "../../.tmp/images"
	}
	store, err := images.Open(filepath.Join(folder, "images"), images.Options{})
	require.NoError(t, err)
	image, err := store.Resolve(images.Base)
	if err != nil {
		image, err = store.Build(t.Context(), images.Base, nil)
	}
	require.NoError(t, err)
	root, err := filepath.Abs(image.Root)
	require.NoError(t, err)
	c := boxes.New(t.TempDir(), root)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// isthmus runs a whole one in front of a place until the test ends.
func isthmus(t *testing.T, behind place) admin.Environment {
	t.Helper()
	dir := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	engine, err := badger.Open(filepath.Join(dir, "store"), log)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	s, err := store.Open(t.Context(), engine)
	require.NoError(t, err)
	secrets, err := fleet.LoadSecrets(filepath.Join(dir, "key"))
	require.NoError(t, err)
	key, err := admin.Prepare(t.Context(), s, dir, "")
	require.NoError(t, err)
	c := config.Default()
	c.Data, c.Listen = dir, "127.0.0.1:0"
	one, err := server.New(server.Options{
		Config: c, APIKey: key, Store: s, Secrets: secrets, KillOnExit: true, Log: log,
		Pools: []fleet.Pool{{Name: "there", Provider: behind(t, secrets)}},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ready, ended := make(chan admin.Environment, 1), make(chan error, 1)
	go func() { ended <- one.Run(ctx, func(where admin.Environment) { ready <- where }) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return <-ready
}

// TestWire runs the suite of requests through an Isthmus in front of each place.
func TestWire(t *testing.T) {
	for name, behind := range map[string]place{"one port": onePort, "only exec": onlyExec, "another Isthmus": another} {
		t.Run(name, func(t *testing.T) {
			where := isthmus(t, behind)
			s, err := wire.Open(t.Context(), wire.Target{APIURL: where.APIURL, SandboxURL: where.SandboxURL, APIKey: where.APIKey})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close(context.WithoutCancel(t.Context()))) })
			for _, c := range wire.Cases() {
				t.Run(c.Name, func(t *testing.T) { c.Run(t, s) })
			}
		})
	}
}
