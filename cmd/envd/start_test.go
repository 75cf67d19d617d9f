package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/envd/stdio"
)

// TestStartAndStdio leaves a daemon behind, reaches it over one program's input and output, breaks that, and
// reaches it again.
func TestStartAndStdio(t *testing.T) {
	path, socket := build(t), "unix:"+filepath.Join(t.TempDir(), "private", "envd.sock")
	config, err := json.Marshal(envd.Config{Transport: "transport", Control: "control", Deadline: time.Now().Add(time.Minute)})
	require.NoError(t, err)
	pipe := filepath.Join(t.TempDir(), "end")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	told, err := os.OpenFile(pipe, os.O_RDWR, 0)
	require.NoError(t, err)
	defer told.Close()
	begin := func() ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), path, "start", "--listen", socket, "--end", pipe)
		cmd.Stdin = bytes.NewReader(config)
		return cmd.CombinedOutput()
	}
	out, err := begin()
	require.NoError(t, err, "%s", out)
	out, err = begin()
	require.Error(t, err, "it runs already")
	require.Contains(t, string(out), "address already in use")

	for range 2 {
		link := linkTo(t, path, socket)
		require.Equal(t, http.StatusNoContent, ask(t, link, http.MethodGet, "/health", nil))
		require.NoError(t, link.Close())
	}
	link := linkTo(t, path, socket)
	end, err := json.Marshal(map[string]time.Time{"deadline": time.Now()})
	require.NoError(t, err)
	require.Equal(t, http.StatusNoContent, ask(t, link, http.MethodPut, envd.RouteDeadline, end))
	require.Eventually(t, func() bool {
		conn, err := link.Dial(t.Context())
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}, 30*time.Second, 10*time.Millisecond, "the daemon goes with its deadline")
	said := make([]byte, 64)
	n, err := told.Read(said)
	require.NoError(t, err)
	require.Equal(t, "deadline\n", string(said[:n]))
}

func linkTo(t *testing.T, path, socket string) *stdio.Link {
	t.Helper()
	cmd := exec.Command(path, "stdio", "--to", socket)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	link, err := stdio.Open(t.Context(), program{out, in})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = link.Close()
		// It ends with the link. Where it was just writing, that ends it by a signal.
		if err := cmd.Wait(); err != nil {
			require.ErrorContains(t, err, "broken pipe")
		}
	})
	return link
}

// program is the output and the input of one.
type program struct {
	io.ReadCloser
	io.WriteCloser
}

func (p program) Close() error { return errors.Join(p.ReadCloser.Close(), p.WriteCloser.Close()) }

func ask(t *testing.T, link *stdio.Link, method, route string, body []byte) int {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return link.Dial(ctx) }}
	request, err := http.NewRequestWithContext(t.Context(), method, "http://envd"+route, bytes.NewReader(body))
	require.NoError(t, err)
	request.Header.Set(envd.HeaderTransport, "transport")
	request.Header.Set(envd.HeaderControl, "control")
	response, err := transport.RoundTrip(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}
