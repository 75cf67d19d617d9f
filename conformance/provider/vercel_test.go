//go:build linux

package provider_test

import (
	"context"
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/vercel"
	"github.com/isthmus/isthmus/conformance/provider"
	simulator "github.com/isthmus/isthmus/conformance/simulators/vercel"
	"github.com/isthmus/isthmus/envd"
)

// vercelAccount is a simulated account, and the adapter for it.
type vercelAccount struct {
	*simulator.Server
	config vercel.Config
}

func newVercelAccount(t *testing.T, world nearby) *vercelAccount {
	t.Helper()
	account := simulator.New(simulator.Config{Cloud: cloud(t, 0x51000000, world), Token: "token", Team: "team_1", Project: "prj_1", Scheme: "http"})
	t.Cleanup(func() { require.NoError(t, account.Close()) })
	server := httptest.NewServer(account)
	t.Cleanup(server.Close)
	return &vercelAccount{account, vercel.Config{
		APIURL: server.URL + "/api", PortsURL: server.URL, Token: func() (string, error) { return "token", nil },
		Team: "team_1", Project: "prj_1", Secrets: secrets, Envd: envdProgram,
	}}
}

func (a *vercelAccount) open() (adapters.Provider, error) { return vercel.New(a.config) }

// leftovers are the sandboxes but the one that keeps envd's snapshot.
func (a *vercelAccount) leftovers() (left []string) {
	for _, one := range a.Sandboxes() {
		if !strings.HasPrefix(one.Name, "isthmusbaked") {
			left = append(left, one.Name)
		}
	}
	return left
}

// TestVercel runs the suite on the adapter and a simulated Vercel.
func TestVercel(t *testing.T) {
	o := outside(t)
	account := newVercelAccount(t, o)
	p, err := account.open()
	require.NoError(t, err)
	run(t, provider.Harness{
		Provider: p, Secrets: secrets, Reopen: account.open, Outside: o.Outside, Resources: adapters.Resources{CPU: 1, MemoryMB: 512},
		AtOnce: 4, Patience: time.Minute, Soon: late, Simulated: true,
	})
	require.Empty(t, account.leftovers())
}

// vercelSpec is a box of the traps' own.
func vercelSpec(t *testing.T, p adapters.Provider, id string) adapters.Spec {
	t.Helper()
	template, err := p.Resolve(t.Context(), "base")
	require.NoError(t, err)
	transport, control := secrets(id)
	return adapters.Spec{
		BoxID: id, Attempt: "attempt-of-" + id, Deployment: "traps", Template: template, Resources: adapters.Resources{CPU: 1, MemoryMB: 512},
		Network: adapters.Network{Internet: true},
		Envd:    envd.Config{SandboxID: id, Transport: transport, Control: control, DefaultUser: "root", Deadline: time.Now().Add(10 * time.Minute)},
	}
}

// TestVercelTraps has the vendor's traps, one by one, in one account.
func TestVercelTraps(t *testing.T) {
	account := newVercelAccount(t, nearby{})
	p, err := account.open()
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	defer func() { stop(); require.NoError(t, <-ended) }()
	for _, trap := range []struct {
		name string
		run  func(*testing.T, *vercelAccount, adapters.Provider)
	}{
		{"a create on a baked template uploads nothing", vercelBaked}, // first, so that nobody bakes while others are struck
		{"failures while creating leave nothing", vercelFailures},
		{"an outage in the midst of a create leaves nothing", vercelOutage},
		{"a lost answer is found, and adopted by its attempt alone", vercelLost},
		{"a session stops under a running command", vercelStops},
		{"what is asked for, in the vendor's units", vercelUnits},
		{"looks boot nothing", vercelLooks},
	} {
		t.Run(trap.name, func(t *testing.T) {
			trap.run(t, account, p)
			account.Inject()
			require.Empty(t, account.leftovers(), "nothing is left, persistent or not")
		})
	}
}

// vercelFailures answers creates with every failure that proves that nothing was made, and with those that do not.
func vercelFailures(t *testing.T, account *vercelAccount, p adapters.Provider) {
	for name, c := range map[string]struct {
		fault simulator.Fault
		want  adapters.Kind
	}{
		"capacity":     {simulator.Fault{Status: 503, Code: "unavailable", Message: "No capacity is left in iad1."}, adapters.KindCapacity},
		"rate limit":   {simulator.Fault{Status: 429, Code: "rate_limited", Message: "Slow down.", RetryAfterS: 9}, adapters.KindRateLimited},
		"concurrency":  {simulator.Fault{Status: 429, Code: "rate_limited", Message: "Too many concurrent sandboxes."}, adapters.KindQuota},
		"the plan":     {simulator.Fault{Status: 402, Code: "payment_required", Message: "Pay."}, adapters.KindQuota},
		"credentials":  {simulator.Fault{Status: 403, Code: "forbidden", Message: "No."}, adapters.KindCredentials},
		"outage":       {simulator.Fault{Status: 503, Code: "unavailable", Message: "Try later."}, adapters.KindUnknownOutcome},
		"a proxy":      {simulator.Fault{Status: 502, Body: "<html>bad gateway</html>", BodyType: "text/html"}, adapters.KindUnknownOutcome},
		"a page":       {simulator.Fault{Body: "<html>hello</html>", BodyType: "text/html"}, adapters.KindUnknownOutcome},
		"a wrong body": {simulator.Fault{Status: 400, Code: "bad_request", Message: "No."}, adapters.KindInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			c.fault.Operation, c.fault.Times = "create", 1
			account.Inject(c.fault)
			spec := vercelSpec(t, p, "itrapfailures")
			_, err := p.Create(t.Context(), spec)
			require.Equal(t, c.want, adapters.KindOf(err), "%v", err)
			_, err = p.Get(t.Context(), spec.BoxID)
			require.Equal(t, adapters.KindNotFound, adapters.KindOf(err))
		})
	}
}

// vercelOutage breaks each of the calls behind a create.
func vercelOutage(t *testing.T, account *vercelAccount, p adapters.Provider) {
	for _, fault := range []simulator.Fault{
		{Operation: "run", Status: 503, Code: "unavailable", Message: "Try later.", Times: 1},
		{Operation: "run", Lose: true, Skip: 1, Times: 1},
		{Operation: "run", Cut: 150, Times: 1},
		{Operation: "stdin", Status: 500, Code: "internal", Message: "Oh.", Times: 1},
	} {
		account.Inject(fault)
		_, err := p.Create(t.Context(), vercelSpec(t, p, "itrapoutage"))
		require.Error(t, err, "%+v", fault)
		require.NotContains(t, []adapters.Kind{adapters.KindInternal, adapters.KindNotFound}, adapters.KindOf(err), "%+v: %v", fault, err)
		require.Empty(t, account.leftovers(), "%+v", fault)
		account.Inject()
	}
}

// vercelLost loses the answer of a create that succeeded. The vendor then says 400 to its name.
func vercelLost(t *testing.T, account *vercelAccount, p adapters.Provider) {
	account.Inject(simulator.Fault{Operation: "create", Lose: true, Times: 1}, simulator.Fault{Operation: "get", Status: 503, Times: 1})
	spec := vercelSpec(t, p, "itraplost")
	_, err := p.Create(t.Context(), spec)
	require.Equal(t, adapters.KindUnknownOutcome, adapters.KindOf(err), "%v", err)
	found, err := p.Get(t.Context(), spec.BoxID)
	require.NoError(t, err)
	require.Equal(t, spec.Attempt, found.Attempt)
	other := spec
	other.Attempt = "another"
	_, err = p.Create(t.Context(), other)
	require.Equal(t, adapters.KindExists, adapters.KindOf(err), "%v", err)
	adopted, err := p.Create(t.Context(), spec)
	require.NoError(t, err, "the same attempt takes what it has made")
	require.True(t, adopted.Alive)
	require.NoError(t, p.Destroy(t.Context(), spec.BoxID))

	account.Inject(simulator.Fault{Operation: "create", Lose: true, Times: 1})
	_, err = p.Create(t.Context(), spec)
	require.NoError(t, err, "the look finds it at once")
	require.Equal(t, []string{spec.BoxID}, account.leftovers(), "and nothing is doubled")
	require.NoError(t, p.Destroy(t.Context(), spec.BoxID))
}

// vercelStops ends a session while a command runs in it.
func vercelStops(t *testing.T, _ *vercelAccount, p adapters.Provider) {
	spec := vercelSpec(t, p, "itrapstops")
	_, err := p.Create(t.Context(), spec)
	require.NoError(t, err)
	program, err := adapters.PowersOf(p).Bootable.Exec(t.Context(), spec.BoxID, []string{"/bin/sleep", "600"})
	require.NoError(t, err)
	defer program.Close()
	require.NoError(t, p.Destroy(t.Context(), spec.BoxID))
	_, err = program.Wait(t.Context())
	require.Error(t, err, "how it ended is not known")
}

// vercelUnits looks at what the vendor was told.
func vercelUnits(t *testing.T, account *vercelAccount, p adapters.Provider) {
	spec := vercelSpec(t, p, "itrapunits")
	spec.Network.Rules = []adapters.HeaderRule{{Host: "api.example.com", Headers: map[string]string{"Authorization": "Bearer k"}}}
	_, err := p.Create(t.Context(), spec)
	require.NoError(t, err)
	all := account.Sandboxes()
	one := all[slices.IndexFunc(all, func(s simulator.Sandbox) bool { return s.Name == spec.BoxID })]
	require.False(t, one.Persistent)
	require.InDelta(t, 10.5*60*1000, one.Timeout, 60_000, "milliseconds")
	require.LessOrEqual(t, len(one.Tags), 5)
	require.Equal(t, map[string]string{"Authorization": "Bearer k"}, account.Injected(spec.BoxID, "api.example.com"))
	require.NoError(t, adapters.PowersOf(p).Extender.Extend(t.Context(), spec.BoxID, time.Now().Add(2*time.Hour)))
	require.NoError(t, p.Destroy(t.Context(), spec.BoxID))
}

// vercelBaked waits until envd is baked, which the first create asks for, and counts what a create costs then.
func vercelBaked(t *testing.T, account *vercelAccount, p adapters.Provider) {
	_, err := p.Create(t.Context(), vercelSpec(t, p, "itrapfirst"))
	require.NoError(t, err)
	require.Contains(t, account.Traffic(), "write", "the first create uploads envd")
	require.NoError(t, p.Destroy(t.Context(), "itrapfirst"))
	baked := func(s simulator.Sandbox) bool {
		return strings.HasPrefix(s.Name, "isthmusbaked") && s.Status == "stopped" && s.Tags["isthmus-baked"] == "done" && s.CurrentSnapshotID != ""
	}
	require.Eventually(t, func() bool { return slices.ContainsFunc(account.Sandboxes(), baked) }, time.Minute, 50*time.Millisecond)
	create := func() map[string]simulator.Traffic {
		account.Traffic()
		spec := vercelSpec(t, p, "itrapbaked")
		_, err := p.Create(t.Context(), spec)
		require.NoError(t, err)
		traffic := account.Traffic()
		require.NoError(t, p.Destroy(t.Context(), spec.BoxID))
		return traffic
	}
	traffic := create()
	for end := time.Now().Add(time.Minute); traffic["write"].Calls > 0 && time.Now().Before(end); {
		traffic = create() // the pool hears of it a moment later than the account shows it
	}
	require.NotContains(t, traffic, "write", "nothing is uploaded")
	calls, bytes := 0, int64(0)
	for _, one := range traffic {
		calls, bytes = calls+one.Calls, bytes+one.Sent+one.Received
	}
	fmt.Printf("a create on a baked template: %d requests, %d bytes: %v\n", calls, bytes, slices.Sorted(maps.Keys(traffic)))
	require.Less(t, bytes, int64(32<<10))
}

// vercelLooks asks for a paused box in every way: resume=true, which boots it, is said by a resume alone.
func vercelLooks(t *testing.T, account *vercelAccount, p adapters.Provider) {
	powers := adapters.PowersOf(p)
	spec := vercelSpec(t, p, "itraplooks")
	_, err := p.Create(t.Context(), spec)
	require.NoError(t, err)
	require.NoError(t, powers.Pauser.Pause(t.Context(), spec.BoxID, adapters.LevelFilesystem))
	account.Traffic()
	box, err := p.Get(t.Context(), spec.BoxID)
	require.NoError(t, err)
	require.True(t, box.Paused)
	_, err = p.List(t.Context(), spec.Deployment)
	require.NoError(t, err)
	_, err = p.Reach(t.Context(), spec.BoxID)
	require.Error(t, err)
	require.Error(t, powers.Extender.Extend(t.Context(), spec.BoxID, time.Now().Add(time.Hour)))
	_, err = powers.Bootable.Exec(t.Context(), spec.BoxID, []string{"/bin/true"})
	require.Error(t, err)
	require.Zero(t, account.Traffic()["resume"].Calls)
	_, err = powers.Pauser.Resume(t.Context(), spec)
	require.NoError(t, err)
	require.Equal(t, 1, account.Traffic()["resume"].Calls)
	require.NoError(t, p.Destroy(t.Context(), spec.BoxID))
}
