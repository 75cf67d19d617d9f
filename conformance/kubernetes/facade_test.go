package kubernetes

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// key is the API key that the facade is told.
const key = "e2b_00112233445566778899aabbccddeeff00112233"

// facade is one Isthmus whose only pool is the cluster.
type facade struct {
	t       *testing.T
	cluster *cluster
	folder  string
	url     string
	command *exec.Cmd
	log     *journal
	ended   chan error
	token   string // of the last sandbox that create made
}

// journal keeps what a process says.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// newFacade starts an Isthmus before the cluster, and stops it with all its sandboxes. lines are added to the pool's
// settings of Kubernetes.
func newFacade(t *testing.T, c *cluster, lines ...string) *facade {
	t.Helper()
	f := &facade{t: t, cluster: c, folder: t.TempDir()}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	f.url = "http://" + address
	config := fmt.Sprintf(`listen: %s
data: %s
pools:
- name: cluster
  provider: kubernetes
  templates: {base: "localhost/base:1", node: "localhost/base:1", python: "localhost/base:1"}
  create_time: 3m
  %s
  kubernetes:
    kubeconfig: %s
    namespace: %s
    envd_image: localhost/envd:1
    pull_policy: Never
    reserve: 0.01
    %s
`, address, filepath.Join(f.folder, "data"), poolLines(lines), os.Getenv(kubeconfig), c.namespace, strings.Join(clusterLines(lines), "\n    "))
	require.NoError(t, os.WriteFile(filepath.Join(f.folder, "isthmus.yaml"), []byte(config), 0o600))
	f.start()
	t.Cleanup(f.finish)
	return f
}

// Lines that begin with "pool " are for the pool itself.
func poolLines(lines []string) string {
	for _, line := range lines {
		if text, is := strings.CutPrefix(line, "pool "); is {
			return text
		}
	}
	return "weight: 1"
}

func clusterLines(lines []string) []string {
	var kept []string
	for _, line := range lines {
		if !strings.HasPrefix(line, "pool ") {
			kept = append(kept, line)
		}
	}
	return kept
}

func (f *facade) start() {
	f.t.Helper()
	f.log = &journal{}
	f.command = exec.Command(top(f.t, "bin", "isthmus"), "serve", "--config", filepath.Join(f.folder, "isthmus.yaml"), "--no-build")
	f.command.Env = append(os.Environ(), "ISTHMUS_API_KEY="+key)
	f.command.Stdout, f.command.Stderr = f.log, f.log
	f.command.Dir = f.folder
	require.NoError(f.t, f.command.Start())
	f.ended = make(chan error, 1)
	command, ended := f.command, f.ended
	go func() { ended <- command.Wait() }()
	for deadline := time.Now().Add(4 * time.Minute); ; {
		if response, err := http.Get(f.url + "/health"); err == nil {
			_ = response.Body.Close()
			return
		}
		select {
		case err := <-f.ended:
			f.t.Fatalf("the facade ended at once: %v\n%s", err, f.log)
		case <-time.After(50 * time.Millisecond):
		}
		require.True(f.t, time.Now().Before(deadline), "the facade does not answer\n%s", f.log)
	}
}

// finish kills what is left and stops the facade; it shows the log of a case that failed.
func (f *facade) finish() {
	if out, err := f.isthmus("sandboxes", "kill", "--all"); err != nil {
		f.t.Errorf("killing what is left: %v\n%s", err, out)
	}
	_ = f.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-f.ended:
	case <-time.After(2 * time.Minute):
		f.t.Error("the facade does not stop")
		_ = f.command.Process.Kill()
	}
	if f.t.Failed() {
		f.t.Logf("the facade's log:\n%s", f.log)
	}
}

func (f *facade) isthmus(args ...string) (string, error) {
	out, err := exec.Command(top(f.t, "bin", "isthmus"), append(args, "--config", filepath.Join(f.folder, "isthmus.yaml"))...).CombinedOutput()
	return string(out), err
}

// call sends one request to the control plane.
func (f *facade) call(method, path, body string, into any) (int, string) {
	f.t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), method, f.url+path, strings.NewReader(body))
	require.NoError(f.t, err)
	request.Header = http.Header{"X-Api-Key": {key}, "Content-Type": {"application/json"}}
	response, err := (&http.Client{Timeout: 4 * time.Minute}).Do(request)
	require.NoError(f.t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(f.t, err)
	if into != nil && response.StatusCode/100 == 2 {
		require.NoError(f.t, json.Unmarshal(text, into), "%s", text)
	}
	return response.StatusCode, string(text)
}

// decode reads an answer of JSON.
func decode(t *testing.T, response *http.Response, into any) {
	t.Helper()
	defer func() { _ = response.Body.Close() }()
	require.NoError(t, json.NewDecoder(response.Body).Decode(into))
}

// client runs an unmodified client's program before the facade.
func (f *facade) client(folder, name string, args ...string) string {
	f.t.Helper()
	inside := append(append(resolver(f.t), name), args...)
	command := exec.CommandContext(f.t.Context(), inside[0], inside[1:]...)
	command.Dir = folder
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "E2B_") && !strings.HasPrefix(entry, "ISTHMUS_") {
			command.Env = append(command.Env, entry)
		}
	}
	command.Env = append(command.Env, "E2B_API_KEY="+key, "E2B_API_URL="+f.url, "E2B_SANDBOX_URL="+f.url)
	out, err := command.CombinedOutput()
	require.NoError(f.t, err, "%s %v:\n%s", name, args, out)
	return string(out)
}

// python is the interpreter with the client, shared with the other suites; it is installed once for each content of
// its requirements.
func python(t *testing.T) string {
	t.Helper()
	requirements, folder := top(t, "conformance", "sdk", "python", "requirements.txt"), top(t, ".tmp", "python")
	once(t, "python", requirements, func() [][]string {
		return [][]string{{"python3", "-m", "venv", "--clear", folder},
			{filepath.Join(folder, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", "--requirement", requirements}}
	})
	return filepath.Join(folder, "bin", "python")
}

// node installs the JavaScript client once for each content of its lock file, and returns its folder.
func node(t *testing.T) string {
	t.Helper()
	folder := top(t, "conformance", "sdk", "js")
	once(t, "node", filepath.Join(folder, "package-lock.json"), func() [][]string {
		return [][]string{{"npm", "ci", "--prefix", folder, "--no-audit", "--no-fund", "--silent"}}
	})
	return folder
}

func once(t *testing.T, name, input string, commands func() [][]string) {
	t.Helper()
	content, err := os.ReadFile(input)
	require.NoError(t, err)
	sum := sha256.Sum256(content)
	stamp, want := top(t, ".tmp", name+".stamp"), hex.EncodeToString(sum[:])
	if have, err := os.ReadFile(stamp); err == nil && string(have) == want {
		return
	}
	for _, command := range commands() {
		out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
		require.NoError(t, err, "%v: %s", command, out)
	}
	require.NoError(t, os.WriteFile(stamp, []byte(want), 0o644))
}
