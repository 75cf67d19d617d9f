//go:build linux

package modal_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/bootstrap"
	"github.com/isthmus/isthmus/adapters/modal"
	simulated "github.com/isthmus/isthmus/conformance/simulators/modal"
	"github.com/isthmus/isthmus/envd"
)

// account is one simulated account with the adapter on it.
type account struct {
	*modal.Provider
	server *simulated.Server
}

func open(t *testing.T, change func(*modal.Config)) account {
	t.Helper()
	s := start(t, func(c *simulated.Config) { c.TokenLife = 3 * time.Second; c.GPUs = []string{"T4"} })
	c := modal.Config{
		URL: s.URL(), TLS: s.TLS(), Key: func() (string, error) { return credential, nil }, GPUs: []string{"t4"},
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	if change != nil {
		change(&c)
	}
	p, err := modal.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return account{p, s}
}

func envdProgram() (io.ReadCloser, error) { return os.Open(filepath.Join(os.Getenv(programs), "envd")) }

// make makes a box, and looks that nothing of it is left when the test has ended.
func (a account) make(t *testing.T, id string, change func(*adapters.Spec)) adapters.Spec {
	t.Helper()
	spec := wanted(t, a.Provider, id)
	if change != nil {
		change(&spec)
	}
	box, err := a.Create(t.Context(), spec)
	require.NoError(t, err)
	require.Equal(t, adapters.Box{ID: id, Attempt: spec.Attempt, Deployment: spec.Deployment, SandboxID: id, CreatedAt: box.CreatedAt, Alive: true}, box)
	t.Cleanup(func() {
		require.NoError(t, a.Destroy(context.WithoutCancel(t.Context()), id))
		assert.Zero(t, a.server.Running())
	})
	return spec
}

// says runs a program to its end.
func (a account) says(t *testing.T, id, script string) string {
	t.Helper()
	p, err := a.Exec(t.Context(), id, []string{"/bin/sh", "-c", script})
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	require.NoError(t, p.CloseWrite())
	out, err := io.ReadAll(p)
	require.NoError(t, err)
	code, err := p.Wait(t.Context())
	require.NoError(t, err)
	require.Zero(t, code)
	return string(out)
}

// unbooted makes boxes and starts nothing in them.
type unbooted struct {
	adapters.Provider
	bare *modal.Provider
}

func (u unbooted) Create(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	return u.bare.Create(ctx, spec)
}

// TestAnAnswerThatNamesNoBox is overcome by the name of the box: one is made, and it is marked that it was so.
func TestAnAnswerThatNamesNoBox(t *testing.T) {
	a := open(t, nil)
	a.server.Faults().Add(simulated.Fault{Method: "SandboxCreateV2", Times: 1, Change: func(answer proto.Message) {
		answer.(*pb.SandboxCreateV2Response).SetSandboxId("")
	}})
	w := adapters.Watch(unbooted{bootstrap.New(a.Provider, bootstrap.Config{}), a.Provider}, nil)
	_, err := w.Create(t.Context(), wanted(t, a.Provider, "unnamed"))
	require.NoError(t, err)
	assert.Equal(t, 1, a.server.Running())
	require.Len(t, w.Drifts(), 1)
	assert.Equal(t, []any{adapters.FeatureCreate, true}, []any{w.Drifts()[0].Feature, w.Drifts()[0].Drifted})
	require.NoError(t, w.Destroy(t.Context(), "unnamed"))
}

// TestLostAnswers makes boxes of which the answer is lost, or cut off: none is doubled, and none is lost.
func TestLostAnswers(t *testing.T) {
	a := open(t, nil)
	a.server.Faults().Add(simulated.Fault{Method: "SandboxCreateV2", Lost: true, Times: 1})
	a.make(t, "lost", nil)
	assert.Equal(t, 1, a.server.Running())
	assert.Equal(t, 1, a.server.Calls()["SandboxCreateV2"].Calls, "it is made once")
	assert.Equal(t, "here\n", a.says(t, "lost", "echo here"))

	_, err := a.Create(t.Context(), wanted(t, a.Provider, "lost"))
	assert.Equal(t, adapters.KindExists, adapters.KindOf(err))

	ctx, cancel := context.WithCancel(t.Context())
	cut := make(chan error, 1)
	spec := wanted(t, a.Provider, "cut")
	go func() {
		_, err := a.Create(ctx, spec)
		cut <- err
	}()
	require.Eventually(t, func() bool { return a.server.Running() == 2 }, time.Minute, time.Millisecond)
	cancel()
	if err := <-cut; err != nil {
		require.ErrorIs(t, err, context.Canceled)
	}
	box, err := a.Get(t.Context(), "cut")
	require.NoError(t, err, "what was cut off is found by its name")
	assert.Equal(t, spec.Attempt, box.Attempt)
	require.NoError(t, a.Destroy(t.Context(), "cut"))
	assert.Equal(t, 1, a.server.Running())
}

// TestCreatesUnderFaults makes many at once while Modal has no room, throttles, is away, and loses answers: what is said
// to be made is there once, and what is said not to be is not.
func TestCreatesUnderFaults(t *testing.T) {
	a := open(t, nil)
	for _, fault := range []simulated.Fault{
		{Code: codes.ResourceExhausted, Message: "Insufficient capacity to create sandbox.", Times: 2},
		{Code: codes.ResourceExhausted, RetryAfter: time.Second, Times: 1},
		{Code: codes.Unavailable, Times: 2},
		{Lost: true, Times: 3},
		{Delay: 300 * time.Millisecond, Times: 1},
	} {
		fault.Method = "SandboxCreateV2"
		a.server.Faults().Add(fault)
	}
	made := map[string]bool{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			spec := wanted(t, a.Provider, fmt.Sprintf("burst%d", i))
			_, err := a.Create(t.Context(), spec)
			mu.Lock()
			defer mu.Unlock()
			made[spec.BoxID] = err == nil
		})
	}
	all.Wait()
	boxes, err := a.List(t.Context(), "deployment")
	require.NoError(t, err)
	there := map[string]bool{}
	for _, box := range boxes {
		assert.False(t, there[box.ID], "it was made twice")
		there[box.ID] = true
	}
	succeeded := 0
	for id, ok := range made {
		assert.Equal(t, ok, there[id], id)
		if ok {
			succeeded++
		}
		require.NoError(t, a.Destroy(t.Context(), id))
	}
	assert.Equal(t, 7, succeeded, "five were refused")
	assert.Equal(t, 12, a.server.Calls()["SandboxCreateV2"].Calls, "none was tried twice")
	assert.Zero(t, a.server.Running())
}

// TestStreamsThatBreak reads a program's output over streams that break, with tokens that end.
func TestStreamsThatBreak(t *testing.T) {
	a := open(t, nil)
	a.make(t, "stream", nil)
	a.server.Faults().Add(simulated.Fault{Method: "TaskExecStdioRead", CutAfter: 1, Times: 4})
	out := a.says(t, "stream", "seq 300000")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 300000)
	assert.Equal(t, "300000", lines[len(lines)-1])
	assert.Greater(t, a.server.Calls()["TaskExecStdioRead"].Calls, 4, "it was read on from where it broke")
	// The router's token lasts three seconds here; the control plane's, too.
	assert.Equal(t, "later\n", a.says(t, "stream", "sleep 4; echo later"))
	assert.Equal(t, "still\n", a.says(t, "stream", "echo still"))
}

// TestCommandLines over what Modal takes are refused by name.
func TestCommandLines(t *testing.T) {
	a := open(t, nil)
	a.make(t, "long", nil)
	_, err := a.Exec(t.Context(), "long", []string{"/bin/echo", strings.Repeat("x", 1<<16)})
	require.Equal(t, adapters.KindInvalid, adapters.KindOf(err))
	assert.Contains(t, err.Error(), "65536")
	_, err = a.Exec(t.Context(), "long", []string{"/bin/echo", strings.Repeat("x", 1<<15)})
	require.NoError(t, err)
}

// TestEnds tells why boxes have ended that nobody ended.
func TestEnds(t *testing.T) {
	a := open(t, nil)
	for how, says := range map[pb.GenericResult_GenericStatus]string{
		pb.GenericResult_GENERIC_STATUS_IDLE_TIMEOUT:            "nobody had used it",
		pb.GenericResult_GENERIC_STATUS_MEMORY_MANAGER_EVICTION: "memory",
		pb.GenericResult_GENERIC_STATUS_TIMEOUT:                 "its time was over",
		pb.GenericResult_GENERIC_STATUS_INTERNAL_FAILURE:        "Modal lost it",
		pb.GenericResult_GenericStatus(77):                      "77",
	} {
		spec := wanted(t, a.Provider, "ending")
		_, err := a.Create(t.Context(), spec)
		require.NoError(t, err)
		require.NoError(t, a.server.End("ending", how))
		_, err = a.Get(t.Context(), "ending")
		require.Equal(t, adapters.KindNotFound, adapters.KindOf(err))
		assert.Contains(t, err.Error(), says)
		_, err = a.Exec(t.Context(), "ending", []string{"/bin/true"})
		require.Equal(t, adapters.KindNotFound, adapters.KindOf(err), "%v", err)
		boxes, err := a.List(t.Context(), spec.Deployment)
		require.NoError(t, err)
		assert.Empty(t, boxes)
		require.NoError(t, a.Destroy(t.Context(), "ending"))
	}
	assert.Zero(t, a.server.Running())
}

// TestGPU takes the first version of the API, and is like any other box afterwards.
func TestGPU(t *testing.T) {
	a := open(t, nil)
	a.make(t, "gpu", func(s *adapters.Spec) { s.GPU = adapters.GPU{Kind: "t4", Count: 1} })
	assert.Equal(t, 1, a.server.Calls()["SandboxCreate"].Calls)
	assert.Zero(t, a.server.Calls()["SandboxCreateV2"].Calls)
	assert.Equal(t, "here\n", a.says(t, "gpu", "echo here"))
	_, err := a.Address(t.Context(), "gpu")
	require.NoError(t, err)
	_, err = a.Get(t.Context(), "gpu")
	require.NoError(t, err)
}

// TestBlockedNetwork leaves a box without an address, and fully usable.
func TestBlockedNetwork(t *testing.T) {
	a := open(t, nil)
	a.make(t, "blocked", func(s *adapters.Spec) { s.Network = adapters.Network{} })
	_, err := a.Address(t.Context(), "blocked")
	require.ErrorIs(t, err, bootstrap.ErrNoAddress)
	require.NoError(t, a.Put(t.Context(), "blocked", "/tmp/file", 0o600, strings.NewReader("content")))
	assert.Equal(t, "content", a.says(t, "blocked", "cat /tmp/file"))
	err = a.SetNetwork(t.Context(), "blocked", adapters.Network{Internet: true})
	assert.Equal(t, adapters.KindUnsupported, adapters.KindOf(err), "%v", err)
}

// TestBakedImages need no upload. It prints what a create takes.
func TestBakedImages(t *testing.T) {
	plain := open(t, nil)
	before := plain.boot(t, "plain")
	plain.server.ResetCalls()
	baking := account{nil, plain.server}
	var err error
	baking.Provider, err = modal.New(modal.Config{
		URL: plain.server.URL(), TLS: plain.server.TLS(), Key: func() (string, error) { return credential, nil }, Envd: envdProgram,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, baking.Close()) }()
	ctx, cancel := context.WithCancel(t.Context())
	running := make(chan error, 1)
	go func() { running <- baking.Run(ctx) }()
	defer func() { cancel(); require.NoError(t, <-running) }()
	require.Eventually(t, func() bool {
		return plain.server.Calls()["ImagePublish"].Calls == 1 && plain.server.Running() == 0
	}, 2*time.Minute, 10*time.Millisecond, "the template is baked, and nothing is left of it")
	after := baking.boot(t, "baked")
	t.Logf("a create takes %v without and %v with envd in the image", before, after)
	assert.Greater(t, before.In, 5<<20)
	assert.Less(t, after.In, 64<<10)
	assert.Less(t, after.Calls, before.Calls)
}

// boot makes a box with envd in it, ends it, and returns the calls that it took and their bytes.
func (a account) boot(t *testing.T, id string) (sum simulated.Count) {
	t.Helper()
	secrets := func(string) (string, string) { return "transport", "control" }
	place := bootstrap.New(a.Provider, bootstrap.Config{Secrets: secrets, Envd: envdProgram, End: modal.EndPipe})
	spec := wanted(t, a.Provider, id)
	spec.Envd = envd.Config{SandboxID: id, Transport: "transport", Control: "control", Deadline: time.Now().Add(time.Hour)}
	_, err := place.Create(t.Context(), spec) // the app and the image are made
	require.NoError(t, err)
	require.NoError(t, place.Destroy(t.Context(), id))
	a.server.ResetCalls()
	_, err = place.Create(t.Context(), spec)
	require.NoError(t, err)
	for _, count := range a.server.Calls() {
		sum.Calls, sum.In, sum.Out = sum.Calls+count.Calls, sum.In+count.In, sum.Out+count.Out
	}
	require.NoError(t, place.Destroy(t.Context(), id))
	return sum
}
