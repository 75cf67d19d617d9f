package main

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/envd"
)

// The daemon is carried into every box, so its size is part of what a box costs.
const maxSize = 12 << 20

// heavy are parts of module paths of which nothing may get into the daemon.
var heavy = []string{"k8s.io", "badger", "gvisor", "echo", "cobra", "oapi-codegen", "opentelemetry", "goccy", "testify", "isthmus/server", "isthmus/store"}

func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "envd")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

func TestBinaryIsStaticAndSmall(t *testing.T) {
	path := build(t)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(maxSize))
	f, err := elf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	for _, p := range f.Progs {
		require.NotEqual(t, elf.PT_INTERP, p.Type, "the binary needs a loader")
	}
	cmd := exec.CommandContext(t.Context(), "go", "version", "-m", path)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err)
	require.Contains(t, string(out), "containermaxprocs=0")
	require.Contains(t, string(out), "updatemaxprocs=0")
}

func TestImportsStayLight(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, name := range heavy {
		require.NotContains(t, string(out), name)
	}
}

func TestServeOverInheritedDescriptors(t *testing.T) {
	path := build(t)
	socket := filepath.Join(t.TempDir(), "e")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	defer l.Close()
	listener, err := l.(*net.UnixListener).File()
	require.NoError(t, err)
	defer listener.Close()
	config, configEnd, err := os.Pipe()
	require.NoError(t, err)
	defer config.Close()
	secret := "s3cret-of-the-test"
	go func() {
		defer configEnd.Close()
		_ = json.NewEncoder(configEnd).Encode(envd.Config{DefaultUser: "root", Transport: secret, Deadline: time.Now().Add(time.Minute)})
	}()
	var log bytes.Buffer
	cmd := exec.CommandContext(t.Context(), path, "serve", "--config-fd", "3", "--listen-fd", "4")
	cmd.ExtraFiles = []*os.File{config, listener}
	cmd.Stderr = &log
	require.NoError(t, cmd.Start())

	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://envd/health", nil)
	require.NoError(t, err)
	req.Header.Set(envd.HeaderTransport, secret)
	resp, err := client.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 204, resp.StatusCode)
	for _, name := range []string{"cmdline", "environ"} {
		text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), name))
		require.NoError(t, err)
		require.NotContains(t, string(text), secret)
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP), "a hang-up is nothing")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), "%s", &log)
}

func TestDeadlineEndsTheProcess(t *testing.T) {
	path := build(t)
	config, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	require.NoError(t, json.NewEncoder(config).Encode(envd.Config{Deadline: time.Now().Add(100 * time.Millisecond)}))
	_, err = config.Seek(0, io.SeekStart)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "serve", "--config-fd", "3", "--listen", "unix:"+filepath.Join(t.TempDir(), "e"))
	cmd.ExtraFiles = []*os.File{config}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func TestUsage(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run([]string{"version"}, &out))
	require.Equal(t, envd.Version+"\n", out.String())
	for _, args := range [][]string{nil, {"nonsense"}, {"serve"}, {"serve", "--config-fd", "x"}} {
		require.Error(t, run(args, io.Discard), "%v", args)
	}
}
