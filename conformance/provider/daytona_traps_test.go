//go:build linux

package provider_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/bootstrap"
	"github.com/isthmus/isthmus/adapters/daytona"
	simulator "github.com/isthmus/isthmus/conformance/simulators/daytona"
	"github.com/isthmus/isthmus/envd"
)

// traffic counts what passes a simulator: its requests, and the bytes of bodies both ways.
type traffic struct {
	mu       sync.Mutex
	requests []string
	up, down int64
}

// around counts what a handler is asked.
func (c *traffic) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.requests = append(c.requests, r.Method+" "+r.URL.Path)
		c.mu.Unlock()
		r.Body = &counted{r.Body, func(n int) { c.add(&c.up, n) }}
		next.ServeHTTP(&countedAnswer{w, func(n int) { c.add(&c.down, n) }}, r)
	})
}

func (c *traffic) add(to *int64, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*to += int64(n)
}

// take returns the counts so far and begins anew.
func (c *traffic) take() (requests []string, up, down int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	requests, up, down = c.requests, c.up, c.down
	c.requests, c.up, c.down = nil, 0, 0
	return requests, up, down
}

type counted struct {
	io.ReadCloser
	add func(int)
}

// Read counts.
func (c *counted) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	c.add(n)
	return n, err
}

type countedAnswer struct {
	http.ResponseWriter
	add func(int)
}

// Write counts.
func (c *countedAnswer) Write(b []byte) (int, error) {
	c.add(len(b))
	return c.ResponseWriter.Write(b)
}

// Unwrap lets streams and WebSockets through.
func (c *countedAnswer) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// daytonaAccount is a simulated account and an adapter for it that runs.
type daytonaAccount struct {
	*simulator.Simulator
	url     string
	traffic *traffic
	adapter *bootstrap.Provider
}

func newDaytonaAccount(t *testing.T, change func(*simulator.Config), configure func(*daytona.Config)) *daytonaAccount {
	t.Helper()
	a := &daytonaAccount{traffic: &traffic{}}
	a.Simulator, a.url = openDaytona(t, nearby{}, change, a.traffic.around)
	c := daytona.Config{APIURL: a.url + "/api", Key: func() (string, error) { return "dtn_simulated", nil }}
	if configure != nil {
		configure(&c)
	}
	place, err := daytona.New(c)
	require.NoError(t, err)
	a.adapter = bootstrap.New(place, bootstrap.Config{Secrets: secrets, Envd: envdProgram})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- a.adapter.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	return a
}

// spec is a box of a template.
func (a *daytonaAccount) spec(t *testing.T, id, template string) adapters.Spec {
	t.Helper()
	found, err := a.adapter.Resolve(t.Context(), template)
	require.NoError(t, err)
	transport, control := secrets(id)
	return adapters.Spec{
		BoxID: id, Attempt: "attempt-" + id, Deployment: "traps", Template: found, Resources: found.Resources, Network: adapters.Network{Internet: true},
		Envd: envd.Config{SandboxID: id, TemplateID: found.ID, Transport: transport, Control: control, DefaultUser: "root", Deadline: time.Now().Add(time.Hour)},
	}
}

// nothingLeft looks at the whole account.
func (a *daytonaAccount) nothingLeft(t *testing.T) {
	t.Helper()
	var page struct{ Items []map[string]any }
	a.ask(t, http.MethodGet, "/sandbox", "", &page)
	for _, one := range page.Items {
		assert.Equal(t, "destroyed", one["desiredState"], "a sandbox was left: %v", one["name"])
	}
}

func (a *daytonaAccount) ask(t *testing.T, method, path, body string, into any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, a.url+"/api"+path, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer dtn_simulated")
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, 2, answer.StatusCode/100, path)
	require.NoError(t, json.NewDecoder(answer.Body).Decode(into))
}

// TestDaytonaFaults has creates fail in every way of the map of errors: each is told by its kind, nothing is left,
// nothing is made twice, and the next create works.
func TestDaytonaFaults(t *testing.T) {
	a := newDaytonaAccount(t, nil, nil)
	a.spec(t, "first", "base") // what the snapshot is like is known from here on
	for _, one := range []struct {
		fault simulator.Fault
		want  adapters.Kind
	}{
		{simulator.Fault{Name: "capacity", Operation: "create"}, adapters.KindCapacity},
		{simulator.Fault{Name: "quota cpu", Operation: "create"}, adapters.KindQuota},
		{simulator.Fault{Name: "suspended", Operation: "create"}, adapters.KindQuota},
		{simulator.Fault{Name: "too large", Operation: "create"}, adapters.KindUnsupported},
		{simulator.Fault{Name: "region", Operation: "create"}, adapters.KindUnsupported},
		{simulator.Fault{Name: "class", Operation: "create"}, adapters.KindUnsupported},
		{simulator.Fault{Name: "invalid", Operation: "create"}, adapters.KindInvalid},
		{simulator.Fault{Name: "unauthorized", Operation: "create"}, adapters.KindCredentials},
		{simulator.Fault{Name: "rate limit", Operation: "create"}, adapters.KindRateLimited},
		{simulator.Fault{Name: "outage", Operation: "create"}, adapters.KindUnknownOutcome},
		{simulator.Fault{Name: simulator.FaultReset, Operation: "create"}, adapters.KindUnknownOutcome},
		{simulator.Fault{Name: simulator.FaultLost, Operation: "create"}, adapters.KindUnknownOutcome},
		{simulator.Fault{Name: simulator.FaultHTML, Operation: "create"}, adapters.KindUnknownOutcome},
		{simulator.Fault{Name: simulator.FaultCut, Operation: "create"}, adapters.KindUnknownOutcome},
		{simulator.Fault{Name: simulator.FaultRunner, Operation: "create"}, adapters.KindCapacity},
		{simulator.Fault{Name: simulator.FaultImage, Operation: "create"}, adapters.KindUnsupported},
		{simulator.Fault{Name: simulator.FaultCorrupt, Operation: "create"}, adapters.KindUnavailable},
		{simulator.Fault{Name: "execution timeout", Operation: "session"}, adapters.KindUnavailable},
		{simulator.Fault{Name: "bad gateway", Operation: "exec"}, adapters.KindUnavailable},
		{simulator.Fault{Name: "session ended", Operation: "logs"}, adapters.KindUnavailable},
		{simulator.Fault{Name: "outage", Operation: "preview"}, ""},
		{simulator.Fault{Name: "outage", Operation: "get"}, ""},
		{simulator.Fault{Name: "state change", Operation: "delete"}, ""},
		{simulator.Fault{Name: "not started", Operation: "session"}, ""},
		{simulator.Fault{Name: simulator.FaultSlow, Operation: "create", Milliseconds: 300}, ""},
		{simulator.Fault{Name: simulator.FaultLying, Operation: "create", Milliseconds: 300}, ""},
		{simulator.Fault{Name: simulator.FaultLying, Operation: "delete", Milliseconds: 300}, ""},
		{simulator.Fault{Name: simulator.FaultFrames, Operation: "logs"}, ""},
	} {
		t.Run(one.fault.Name+" at "+one.fault.Operation, func(t *testing.T) {
			one.fault.Times = 1
			require.NoError(t, a.Strike(one.fault))
			id := "box" + strings.ToLower(strings.ReplaceAll(one.fault.Name+one.fault.Operation, " ", ""))
			spec := a.spec(t, id, "base")
			_, err := a.adapter.Create(t.Context(), spec)
			if one.want == "" {
				require.NoError(t, err)
			} else {
				require.Equal(t, one.want, adapters.KindOf(err), "%v", err)
			}
			if box, lookErr := a.adapter.Get(t.Context(), id); lookErr == nil {
				require.True(t, err == nil || one.want == adapters.KindUnknownOutcome, "a create that failed left a box")
				require.Equal(t, spec.Attempt, box.Attempt)
			}
			require.NoError(t, a.adapter.Destroy(t.Context(), id))
			a.Heal()
			a.nothingLeft(t)
		})
	}
}

// TestDaytonaTraps holds the adapter to what is special about the vendor.
func TestDaytonaTraps(t *testing.T) {
	a := newDaytonaAccount(t, func(c *simulator.Config) { c.Build = 3 * time.Second }, func(c *daytona.Config) {
		c.Templates = []daytona.Template{{Name: "base", Snapshot: "daytona-small"}, {Name: "gpu", Snapshot: "daytona-gpu"}, {Name: "raw", Image: "debian:12"}}
	})
	t.Run("a row that failed holds the name", func(t *testing.T) {
		require.NoError(t, a.Strike(simulator.Fault{Name: simulator.FaultCorrupt, Operation: "create", Times: 1}))
		var row map[string]any
		a.ask(t, http.MethodPost, "/sandbox", `{"name":"held","labels":{"isthmus-id":"held","isthmus-deployment":"traps"}}`, &row)
		require.Eventually(t, func() bool {
			a.ask(t, http.MethodGet, "/sandbox/held", "", &row)
			return row["state"] == "error"
		}, time.Minute, 20*time.Millisecond)
		_, err := a.adapter.Create(t.Context(), a.spec(t, "held", "base"))
		require.NoError(t, err)
		require.NoError(t, a.adapter.Destroy(t.Context(), "held"))
	})
	t.Run("the first sandbox of an image takes its time", func(t *testing.T) {
		began := time.Now()
		_, err := a.adapter.Create(t.Context(), a.spec(t, "raw", "raw"))
		require.NoError(t, err)
		require.Greater(t, time.Since(began), 3*time.Second)
		require.NoError(t, a.adapter.Destroy(t.Context(), "raw"))
	})
	t.Run("sandboxes with a GPU are ephemeral", func(t *testing.T) {
		_, err := a.adapter.Create(t.Context(), a.spec(t, "gpu", "gpu"))
		require.NoError(t, err)
		var row map[string]any
		a.ask(t, http.MethodGet, "/sandbox/gpu", "", &row)
		require.EqualValues(t, 0, row["autoDeleteInterval"])
		require.EqualValues(t, 0, row["autoStopInterval"], "no sandbox is stopped because it is quiet")
		require.NotEmpty(t, row["autoDestroyAt"], "the vendor's own timer is behind ours")
		until := row["autoDestroyAt"]
		err = adapters.PowersOf(a.adapter).Pauser.Pause(t.Context(), "gpu", adapters.LevelFilesystem)
		require.Equal(t, adapters.KindUnsupported, adapters.KindOf(err), "a stop deletes it: %v", err)
		a.ask(t, http.MethodGet, "/sandbox/gpu", "", &row)
		require.Equal(t, []any{"started", "started", until}, []any{row["state"], row["desiredState"], row["autoDestroyAt"]}, "nothing was changed")
		require.NoError(t, a.adapter.Destroy(t.Context(), "gpu"))
	})
	a.nothingLeft(t)
}

// TestDaytonaCosts prints what a create costs, without a baked snapshot and with one: then nothing is uploaded.
func TestDaytonaCosts(t *testing.T) {
	a := newDaytonaAccount(t, nil, func(c *daytona.Config) { c.Envd = envdProgram })
	create := func(id string) (requests []string, up, down int64) {
		spec := a.spec(t, id, "base")
		a.traffic.take()
		_, err := a.adapter.Create(t.Context(), spec)
		require.NoError(t, err)
		requests, up, down = a.traffic.take()
		require.NoError(t, a.adapter.Destroy(t.Context(), id))
		return requests, up, down
	}
	requests, up, down := create("plain")
	t.Logf("without a baked snapshot, with the baking in the background: %d requests, %d bytes up, %d bytes down", len(requests), up, down)
	var page struct {
		Items []struct{ Name, State string }
	}
	baked := ""
	require.Eventually(t, func() bool {
		a.ask(t, http.MethodGet, "/snapshots", "", &page)
		for _, one := range page.Items {
			if strings.HasPrefix(one.Name, "isthmus-envd.") && one.State == "active" {
				baked = one.Name
			}
		}
		return baked != ""
	}, 2*time.Minute, 50*time.Millisecond)
	require.Eventually(t, func() bool {
		a.ask(t, http.MethodGet, "/sandbox", "", &struct{}{})
		requests, up, down = create("baked")
		return !strings.Contains(strings.Join(requests, "\n"), "upload")
	}, 2*time.Minute, time.Second)
	t.Logf("of %s: %d requests, %d bytes up, %d bytes down: %s", baked, len(requests), up, down, strings.Join(requests, ", "))
	require.Less(t, up, int64(64<<10))
	require.LessOrEqual(t, len(requests), 25)
}
