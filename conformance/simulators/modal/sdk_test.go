//go:build linux

package modal_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	sdk "github.com/modal-labs/modal-client/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/conformance/simulators/modal"
)

// connect is the official Go SDK on a server.
func connect(t *testing.T, s *modal.Server) (*sdk.Client, *sdk.App, *sdk.Image) {
	t.Helper()
	t.Setenv("MODAL_SERVER_URL", s.URL())
	t.Setenv("MODAL_CONFIG_PATH", t.TempDir()+"/none.toml")
	patience := 10 * time.Second
	client, err := sdk.NewClientWithOptions(&sdk.ClientParams{TokenID: "ak-simulated", TokenSecret: "as-simulated", MaxThrottleWait: &patience})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	app, err := client.Apps.FromName(t.Context(), "tests", &sdk.AppFromNameParams{CreateIfMissing: true})
	require.NoError(t, err)
	return client, app, client.Images.FromRegistry("debian:12", nil)
}

// TestGoSDK has the official Go SDK do what it can do with a sandbox, on both versions of the API.
func TestGoSDK(t *testing.T) {
	s := start(t, nil)
	client, app, image := connect(t, s)
	for name, gpu := range map[string]string{"second version": "", "first version": "T4"} {
		t.Run(name, func(t *testing.T) {
			box, err := client.Sandboxes.Create(t.Context(), app, image, &sdk.SandboxCreateParams{
				Name: "one", Timeout: 5 * time.Minute, CPU: 0.5, MemoryMiB: 256, GPU: gpu, EncryptedPorts: []int{8000},
				Env: map[string]string{"GREETING": "hello"}, Tags: map[string]string{"owner": "tests"},
			})
			require.NoError(t, err)
			defer func() { _, _ = box.Terminate(context.WithoutCancel(t.Context()), nil) }()
			runs(t, box)
			files(t, box)
			ports(t, s, box)
			found, err := client.Sandboxes.FromID(t.Context(), box.SandboxID, nil)
			require.NoError(t, err)
			tags, err := found.GetTags(t.Context(), nil)
			require.NoError(t, err)
			assert.Equal(t, map[string]string{"owner": "tests"}, tags)
			code, err := box.Poll(t.Context(), nil)
			require.NoError(t, err)
			assert.Nil(t, code)
			_, err = client.Sandboxes.Create(t.Context(), app, image, &sdk.SandboxCreateParams{Name: "one", GPU: gpu})
			var exists sdk.AlreadyExistsError
			require.ErrorAs(t, err, &exists)
			status, err := box.Terminate(t.Context(), &sdk.SandboxTerminateParams{Wait: true})
			require.NoError(t, err)
			assert.Equal(t, 137, status)
		})
	}
	assert.Zero(t, s.Running())
}

func runs(t *testing.T, box *sdk.Sandbox) {
	t.Helper()
	p, err := box.Exec(t.Context(), []string{"sh", "-c", "cat; echo $GREETING $MORE; echo bad >&2; exit 7"}, &sdk.SandboxExecParams{Env: map[string]string{"MORE": "again"}})
	require.NoError(t, err)
	_, err = io.WriteString(p.Stdin, "input\n")
	require.NoError(t, err)
	require.NoError(t, p.Stdin.Close())
	out, err := io.ReadAll(p.Stdout)
	require.NoError(t, err)
	log, err := io.ReadAll(p.Stderr)
	require.NoError(t, err)
	code, err := p.Wait(t.Context(), nil)
	require.NoError(t, err)
	assert.Equal(t, "input\nhello again\n", string(out))
	assert.Equal(t, "bad\n", string(log))
	assert.Equal(t, 7, code)

	p, err = box.Exec(t.Context(), []string{"sh", "-c", "tty; stty size; kill -9 $$"}, &sdk.SandboxExecParams{PTY: true})
	require.NoError(t, err)
	out, err = io.ReadAll(p.Stdout)
	require.NoError(t, err)
	assert.Contains(t, string(out), "24 80")
	assert.Contains(t, string(out), "/dev/pts/")
	code, err = p.Wait(t.Context(), nil)
	require.NoError(t, err)
	assert.Equal(t, 128+9, code)
}

func files(t *testing.T, box *sdk.Sandbox) {
	t.Helper()
	fs := box.Filesystem
	content := bytes.Repeat([]byte("a line\n"), 300_000)
	require.NoError(t, fs.MakeDirectory(t.Context(), "/tmp/some/folder", nil))
	require.NoError(t, fs.WriteBytes(t.Context(), content, "/tmp/some/folder/file", nil))
	got, err := fs.ReadBytes(t.Context(), "/tmp/some/folder/file", nil)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(content, got))
	list, err := fs.ListFiles(t.Context(), "/tmp/some/folder", nil)
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, "file", list[0].Name)
	assert.EqualValues(t, len(content), list[0].Size)
	info, err := fs.Stat(t.Context(), "/tmp/some", nil)
	require.NoError(t, err)
	assert.Equal(t, sdk.FileTypeDirectory, info.Type)
	_, err = fs.ReadBytes(t.Context(), "/tmp/nothing", nil)
	var missing sdk.SandboxFilesystemNotFoundError
	require.ErrorAs(t, err, &missing)
	require.NoError(t, fs.Remove(t.Context(), "/tmp/some", &sdk.SandboxFilesystemRemoveParams{Recursive: true}))
}

func ports(t *testing.T, s *modal.Server, box *sdk.Sandbox) {
	t.Helper()
	server, err := box.Exec(t.Context(), []string{"python3", "-u", "-m", "http.server", "8000", "--bind", "127.0.0.1", "--directory", "/etc"}, nil)
	require.NoError(t, err)
	_, err = server.Stdout.Read(make([]byte, 1)) // it says that it serves
	require.NoError(t, err)
	tunnels, err := box.Tunnels(t.Context(), time.Minute, nil)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: s.TLS()}}
	defer client.CloseIdleConnections()
	response, err := client.Get(tunnels[8000].URL() + "/hostname")
	require.NoError(t, err)
	defer response.Body.Close()
	assert.Equal(t, http.StatusOK, response.StatusCode)
}
