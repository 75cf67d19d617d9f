package harness

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
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

// key is the API key that every facade of the harness is told.
const key = "e2b_00112233445566778899aabbccddeeff00112233"

// Times that are long enough for a loaded machine.
const (
	startLimit = 60 * time.Second
	stopLimit  = 60 * time.Second
)

// facade is one Isthmus process with a data folder of its own.
type facade struct {
	t          *testing.T
	binary     string
	role       string // that of the harness which is the facade; empty: the facade is the binary
	user       *syscall.SysProcAttr
	told       []string
	groups     []string // the control groups that it is started in
	groupsUser int
	data       string
	config     string
	flags      []string
	url        string
	command    *exec.Cmd
	output     *tail
	ended      chan error
	census     *census
}

// settings is how a facade is configured.
type settings struct {
	// domain serves the domain by host name over TLS on port 443 instead of plain http on port 3000.
	domain bool
	// ordinary runs the facade as an ordinary user with subordinate ids instead of root.
	ordinary bool
	// delegated gives that user control groups.
	delegated bool
	// group is a control group that the facade is started in, as root.
	group string
	// told is told to clients in their environment, beside what every client is told.
	told []string
	// lines are added to the YAML configuration.
	lines string
	// nested has the sandboxes made by another Isthmus behind this one.
	nested bool
	// role is roleOnePort or roleOnlyExec to have the sandboxes made of bare boxes, by a facade that is the harness.
	role string
	// port is that of plain http; 0: 3000.
	port int
	// flags are added to the command line of serve.
	flags []string
}

// newFacade starts an Isthmus and stops it, with all its sandboxes, when the test has ended.
func newFacade(t *testing.T, s settings) *facade {
	t.Helper()
	address := fmt.Sprintf("127.0.0.1:%d", cmp.Or(s.port, 3000))
	f := &facade{t: t, flags: s.flags, role: s.role, binary: top("bin", "isthmus"), user: &syscall.SysProcAttr{Setpgid: true}, told: s.told, url: "http://" + address}
	home := t.TempDir()
	if s.ordinary {
		home, f.binary = homeOf(t)
		f.user = asOrdinary()
	}
	if s.delegated {
		f.groups, f.groupsUser, f.user = delegate(t), ordinaryID, &syscall.SysProcAttr{Setpgid: true}
	}
	if s.group != "" {
		f.groups = []string{s.group}
	}
	f.data, f.config = filepath.Join(home, "data"), filepath.Join(home, "isthmus.yaml")
	data := f.data
	text := "listen: " + address + "\ndata: " + data + "\n"
	if s.nested {
		s.lines += innerPool(t)
	}
	if s.domain {
		f.url = "https://api." + domain
		text = fmt.Sprintf("listen: 127.0.0.1:443\ndata: %s\ndomain: %s\n", data, domain)
	}
	require.NoError(t, os.WriteFile(f.config, []byte(text+s.lines), 0o644))
	if !s.ordinary {
		require.NoError(t, shareImages(data))
	}
	if s.domain {
		out, err := f.isthmus("tls", "init")
		require.NoError(t, err, out)
	}
	f.census = &census{data: data, boxes: map[string]bool{}}
	go f.census.count(t.Context())
	if s.port == 0 {
		hostServer(t)
	}
	f.start()
	t.Cleanup(f.finish)
	f.warmUp()
	return f
}

// innerPool starts another Isthmus and returns the configuration of a pool that is it. Both know the same key.
func innerPool(t *testing.T) string {
	t.Helper()
	inner := newFacade(t, settings{port: 3001, lines: "local:\n  warm: {}\n"})
	return fmt.Sprintf(`pools:
- name: inner
  provider: e2b
  api_url: %s
  sandbox_url: %s
  credential: {env: ISTHMUS_API_KEY}
  isolation: container
  templates: {base: base, node: node, python: python}
`, inner.url, inner.url)
}

// shareImages makes the images that were built before those of a data folder.
func shareImages(data string) error {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	return os.Symlink(filepath.Join(imagesFolder(), "images"), filepath.Join(data, "images"))
}

// start runs the process and waits until it answers.
func (f *facade) start() {
	f.t.Helper()
	f.output = &tail{}
	program, args := f.binary, append([]string{"serve", "--config", f.config, "--no-build"}, f.flags...)
	if f.role != "" {
		program = "/proc/self/exe"
	}
	if len(f.groups) > 0 {
		program, args = enter(f.groups, f.groupsUser, program, args...)
	}
	f.command = exec.Command(program, args...)
	f.command.Env = append(os.Environ(), "ISTHMUS_API_KEY="+key, roleVariable+"="+f.role)
	f.command.Stdout, f.command.Stderr = f.output, f.output
	f.command.SysProcAttr = f.user
	f.command.Dir = filepath.Dir(f.config)
	require.NoError(f.t, f.command.Start())
	f.ended = make(chan error, 1)
	command, ended := f.command, f.ended
	go func() { ended <- command.Wait() }()
	deadline := time.Now().Add(startLimit)
	for !f.answers() {
		select {
		case err := <-f.ended:
			f.t.Fatalf("the facade ended at once: %v\n%s", err, f.output)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("the facade does not answer\n%s", f.output)
		}
	}
}

// warmUp makes and kills one sandbox: the first one leaves what all later ones share.
func (f *facade) warmUp() {
	f.t.Helper()
	var made struct {
		SandboxID string `json:"sandboxID"`
	}
	f.call("POST", "/v2/sandboxes", `{"templateID":"base"}`, http.StatusCreated, &made)
	f.call("DELETE", "/sandboxes/"+made.SandboxID, "", http.StatusNoContent, nil)
}

// call sends one request to the control plane and reads its answer into a value, if there is one to be read.
func (f *facade) call(method, path, body string, status int, into any) {
	f.t.Helper()
	request, err := http.NewRequestWithContext(f.t.Context(), method, f.url+path, strings.NewReader(body))
	require.NoError(f.t, err)
	request.Header.Set("X-API-Key", key)
	request.Header.Set("Content-Type", "application/json")
	client := f.client()
	client.Timeout = time.Minute
	response, err := client.Do(request)
	require.NoError(f.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(f.t, err)
	require.Equal(f.t, status, response.StatusCode, "%s %s: %s", method, path, text)
	if into != nil {
		require.NoError(f.t, json.Unmarshal(text, into), "%s", text)
	}
}

// answers says whether the facade serves.
func (f *facade) answers() bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, "GET", f.url+"/health", nil)
	if err != nil {
		return false
	}
	response, err := f.client().Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err == nil && response.StatusCode/100 == 2
}

// client opens a connection for each request: facades come and go at the same address.
func (f *facade) client() *http.Client {
	transport := &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{Timeout: 2 * time.Second}).DialContext}
	if text, err := os.ReadFile(f.certificate("ca.pem")); err == nil {
		trusted := x509.NewCertPool()
		trusted.AppendCertsFromPEM(text)
		transport.TLSClientConfig = &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}
}

// certificate is a file that `isthmus tls init` has made in domain mode.
func (f *facade) certificate(name string) string { return filepath.Join(f.data, "tls", name) }

// kill ends the process as a crash would, leaving its sandboxes.
func (f *facade) kill() {
	f.t.Helper()
	require.NoError(f.t, f.command.Process.Kill())
	<-f.ended
}

// stop ends the process by a signal, leaving its sandboxes, and says how it ended.
func (f *facade) stop() error {
	if err := f.command.Process.Signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	select {
	case err := <-f.ended:
		return err
	case <-time.After(stopLimit):
		_ = f.command.Process.Kill()
		<-f.ended
		return errors.New("the facade did not stop when it was asked to")
	}
}

// finish kills all sandboxes and stops the process; it shows the log of a test that failed.
func (f *facade) finish() {
	if f.command.ProcessState == nil {
		if out, err := f.isthmus("sandboxes", "kill", "--all"); err != nil {
			f.t.Errorf("killing what is left: %v\n%s", err, out)
		}
		if err := f.stop(); err != nil {
			f.t.Errorf("stopping the facade: %v", err)
		}
	}
	if f.t.Failed() {
		f.t.Logf("the facade's log, without calls that went well:\n%s", f.output.noteworthy())
	}
}

// isthmus runs a command of the binary on the facade's data folder.
func (f *facade) isthmus(args ...string) (string, error) {
	command := exec.Command(f.binary, append(args, "--config", f.config)...)
	out, err := command.CombinedOutput()
	return string(out), err
}

// environment is what an unmodified client is told to use this facade, and what the suites are told of the world.
func (f *facade) environment() []string {
	env := []string{
		"E2B_API_KEY=" + key,
		"ISTHMUS_TEST_INTERNET=http://" + internetName + "/",
		"ISTHMUS_TEST_INTERNET_ADDRESS=http://" + internetAddress + "/",
		"ISTHMUS_TEST_INDEX=http://" + packagesName,
		"ISTHMUS_TEST_REFUSED=" + strings.Join(refusedURLs(), ","),
	}
	if strings.HasPrefix(f.url, "https:") {
		return append(env, "E2B_DOMAIN="+domain,
			"SSL_CERT_FILE="+f.certificate("bundle.pem"), "NODE_EXTRA_CA_CERTS="+f.certificate("ca.pem"))
	}
	return append(env, "E2B_API_URL="+f.url, "E2B_SANDBOX_URL="+f.url)
}

// refusedURLs are addresses of the host, which no sandbox may reach: each has a server behind it.
func refusedURLs() []string {
	var urls []string
	for _, address := range []string{"127.0.0.1:3000", "127.0.0.1:443", hostAddress + ":8099", spareAddress + ":8099", privateAddress + ":8099", "169.254.169.254", "[::1]:8099"} {
		urls = append(urls, "http://"+address+"/")
	}
	return urls
}

// program runs a client program with the facade's environment and returns what it printed.
func (f *facade) program(ctx context.Context, folder, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = folder
	command.Env = append(append(cleanEnvironment(), f.environment()...), f.told...)
	command.WaitDelay = 5 * time.Second
	var out, log bytes.Buffer
	command.Stdout, command.Stderr = &out, &log
	if err := command.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w\n%s%s", name, err, out.String(), log.String())
	}
	return out.String(), nil
}

// cleanEnvironment is the harness's own environment without anything that a client of E2B would read.
func cleanEnvironment() []string {
	var kept []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "E2B_") && !strings.HasPrefix(entry, "ISTHMUS_") {
			kept = append(kept, entry)
		}
	}
	return kept
}

// tail keeps the last part of what a process says.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 64 << 10

func (l *tail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	if extra := len(l.text) - tailSize; extra > 0 {
		l.text = append(l.text[:0], l.text[extra:]...)
	}
	return len(p), nil
}

// noteworthy is what was said but the lines of the access log that tell of no fault of the server's.
func (l *tail) noteworthy() string {
	var kept []string
	for line := range strings.SplitSeq(l.String(), "\n") {
		if !strings.Contains(line, " msg=call ") || strings.Contains(line, " status=50") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}
