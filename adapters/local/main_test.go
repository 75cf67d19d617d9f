//go:build linux

package local_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local"
	imagestore "github.com/isthmus/isthmus/adapters/local/images"
	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/envd/process"
	"github.com/isthmus/isthmus/envd/process/processconnect"
)

// What TestMain makes once for all tests.
const (
	envRole = "LOCAL_TEST_ROLE" // the test binary as another process
	envEnvd = "LOCAL_TEST_ENVD" // the built daemon
	envSudo = "LOCAL_TEST_SUDO"
	envRoot = "ISTHMUS_TEST_ROOT"
)

func TestMain(m *testing.M) {
	switch role := os.Getenv(envRole); {
	case role == roleUser:
		panic(becomeUser())
	case role != "":
		os.Exit(play(role))
	case os.Getuid() != 0: // the ordinary user: see TestAsAnOrdinaryUser
		os.Exit(m.Run())
	}
	os.Exit(withPrograms(m))
}

// withPrograms builds what goes into boxes for this run.
func withPrograms(m *testing.M) int {
	dir, err := os.MkdirTemp("", "isthmus-local-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		panic(err)
	}
	for program, env := range map[string]string{"envd": envEnvd, "sudo": envSudo} {
		path := filepath.Join(dir, program)
		build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "../../cmd/"+program)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			panic(fmt.Sprintf("build %s: %v: %s", program, err, out))
		}
		os.Setenv(env, path)
	}
	if os.Getenv(envRoot) == "" {
		os.Setenv(envRoot, base())
	}
	return m.Run()
}

// base builds the base image in the module's folder for temporary things, once for all runs. Whoever has an
// unpacked root file system names it in the environment.
func base() string {
	store, err := imagestore.Open("../../.tmp/images", imagestore.Options{})
	if err != nil {
		panic(err)
	}
	image, err := store.Build(context.Background(), imagestore.Base, nil)
	if err != nil {
		panic(err)
	}
	return image.Root
}

// images gives every name the test's root file system.
type images struct{}

func (images) Root(_ context.Context, name string) (local.Root, error) {
	if name != "base" {
		return local.Root{}, adapters.Errorf(adapters.KindNotFound, "there is no template %s: base", name)
	}
	return local.Root{Name: name, Layers: []string{os.Getenv(envRoot)}}, nil
}

const deployment = "test"

// secrets are those of a box, as the fleet would derive them.
func secrets(boxID string) (transport, control string) {
	return "transport of " + boxID, "control of " + boxID
}

func config(dir string) local.Config {
	return local.Config{DataDir: dir, EnvdPath: os.Getenv(envEnvd), SudoPath: os.Getenv(envSudo), Secrets: secrets, Images: images{}}
}

// ranges is how many ranges of user ids a test may use.
const ranges = 64

// open opens an adapter in a folder of the test's own, and looks afterwards that the machine has nothing of
// it any more.
func open(t *testing.T, change ...func(*local.Config)) *local.Local {
	t.Helper()
	c := folder(t)
	for _, f := range change {
		f(&c)
	}
	l, err := local.Open(c)
	require.NoError(t, err)
	t.Cleanup(func() { closed(t, l, c) })
	return l
}

// folder is a configuration in a folder of the test's own, with user ids of its own.
func folder(t *testing.T) local.Config {
	t.Helper()
	c := config(t.TempDir())
	if os.Getuid() == 0 {
		c.FirstID = firstID(t)
		return c
	}
	_, err := fmt.Sscan(os.Getenv(envFirst), &c.FirstID) // all boxes of the ordinary user share these
	require.NoError(t, err, "run these tests as root: they make the ordinary user themselves")
	return c
}

// firstID is a range of user ids that no other test on this machine uses at the same time: each holds a name that the
// kernel gives once, and takes back from a program that dies.
func firstID(t *testing.T) uint32 {
	t.Helper()
	const size = ranges * 65536
	for n := range uint32(256) {
		name, err := net.Listen("unix", fmt.Sprintf("@isthmus-test-ids-%d", n))
		if err != nil {
			require.ErrorIs(t, err, syscall.EADDRINUSE)
			continue
		}
		t.Cleanup(func() { _ = name.Close() })
		return 0xA0000000 + n*size // up to 0xE0000000, far from where a server begins
	}
	require.Fail(t, "all ranges of user ids are in use by other tests")
	return 0
}

// closed destroys what is left and proves that it is gone.
func closed(t *testing.T, l *local.Local, c local.Config) {
	t.Helper()
	all, err := l.List(context.Background(), deployment)
	require.NoError(t, err)
	for _, b := range all {
		require.NoError(t, l.Destroy(context.Background(), b.ID))
	}
	require.NoError(t, l.Close())
	require.Empty(t, remains(t, c), "something is left behind")
}

// newID is a box id as the fleet makes them.
func newID() string { return "i" + strings.ToLower(rand.Text())[:20] }

func spec(id string) adapters.Spec {
	transport, control := secrets(id)
	return adapters.Spec{
		BoxID: id, Attempt: "attempt of " + id, Deployment: deployment, TeamID: "team",
		Template:  adapters.Template{Name: "base"},
		Resources: adapters.Resources{CPU: 1, MemoryMB: 256, DiskMB: 256},
		Envd: envd.Config{
			SandboxID: id, TemplateID: "base", Transport: transport, Control: control,
			Deadline: time.Now().Add(5 * time.Minute),
		},
	}
}

// create makes a box with the defaults of spec, changed.
func create(t *testing.T, l *local.Local, change ...func(*adapters.Spec)) string {
	t.Helper()
	s := spec(newID())
	for _, f := range change {
		f(&s)
	}
	b, err := l.Create(t.Context(), s)
	require.NoError(t, err)
	require.True(t, b.Alive)
	require.Equal(t, s.BoxID, b.ID)
	return b.ID
}

// client speaks to envd in a box as the gateway does.
func client(t *testing.T, l *local.Local, id string) (*http.Client, adapters.Endpoint) {
	t.Helper()
	e, err := l.Reach(t.Context(), id)
	require.NoError(t, err)
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return e.Dial(ctx) }}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: withHeader{transport, e.Header}}, e
}

type withHeader struct {
	next   http.RoundTripper
	header http.Header
}

func (w withHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for k, v := range w.header {
		r.Header[k] = v
	}
	return w.next.RoundTrip(r)
}

// result is how a command ended.
type result struct {
	code           int
	stdout, stderr string
}

// sh runs a shell command in a box, as `user` or as another one.
func sh(t *testing.T, l *local.Local, id, user, command string) result {
	t.Helper()
	c, e := client(t, l, id)
	req := connect.NewRequest(&process.StartRequest{Process: &process.ProcessConfig{Cmd: "/bin/bash", Args: []string{"-l", "-c", command}}})
	req.Header().Set("Authorization", basic(user))
	stream, err := processconnect.NewProcessClient(c, e.URL.String()).Start(t.Context(), req)
	require.NoError(t, err)
	defer stream.Close()
	var r result
	for stream.Receive() {
		event := stream.Msg().GetEvent()
		r.stdout += string(event.GetData().GetStdout())
		r.stderr += string(event.GetData().GetStderr())
		if end := event.GetEnd(); end != nil {
			r.code = int(end.GetExitCode())
		}
	}
	require.NoError(t, stream.Err())
	return r
}

func basic(user string) string {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(user, "")
	return r.Header.Get("Authorization")
}
