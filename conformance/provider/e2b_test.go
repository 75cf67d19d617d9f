//go:build linux

package provider_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/e2b"
	"github.com/isthmus/isthmus/conformance/provider"
)

// innerKey is the API key of the inner Isthmus.
const innerKey = "e2b_00112233445566778899aabbccddeeff00112233"

// TestE2B runs the suite on the sandboxes of another Isthmus, which has them on this machine.
func TestE2B(t *testing.T) {
	address := isthmus(t)
	open := func() (adapters.Provider, error) {
		return e2b.New(e2b.Config{
			APIURL: address, SandboxURL: address, Key: func() (string, error) { return innerKey, nil },
			Templates: []e2b.Template{{Name: "base"}}, Isolation: "container",
		})
	}
	p, err := open()
	require.NoError(t, err)
	run(t, provider.Harness{Provider: p, Secrets: secrets, Reopen: open, AtOnce: 4})
}

// isthmus starts one and returns its address. It ends, with all its sandboxes, when the test does.
func isthmus(t *testing.T) string {
	t.Helper()
	data := t.TempDir()
	require.NoError(t, os.Symlink(imagesFolder(t), filepath.Join(data, "images")))
	root(t)
	config := filepath.Join(data, "isthmus.yaml")
	text := fmt.Sprintf("listen: 127.0.0.1:0\ndata: %s\nlocal:\n  envd: %s\n  sudo: %s\n  first_id: %d\n  warm: {}\n", data, os.Getenv(envEnvd), os.Getenv(envSudo), 0x58000000)
	require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
	cmd := exec.Command(os.Getenv(envIsthmus), "serve", "--config", config, "--no-build", "--kill-on-exit")
	cmd.Env = append(os.Environ(), "ISTHMUS_API_KEY="+innerKey)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var log strings.Builder
	cmd.Stderr = &log
	require.NoError(t, cmd.Start())
	said := bufio.NewReader(out)
	first, err := said.ReadString('\n') // It says where clients may come when they may.
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		killer := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		defer killer.Stop()
		_, _ = said.WriteTo(&strings.Builder{})
		require.NoError(t, cmd.Wait(), "%s", &log)
		if t.Failed() {
			t.Log(log.String())
		}
	})
	found := regexp.MustCompile(`E2B_API_URL=(\S+)`).FindStringSubmatch(first)
	require.NotNil(t, found, first)
	return found[1]
}
