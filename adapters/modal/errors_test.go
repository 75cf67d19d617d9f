//go:build linux

package modal_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/modal"
	simulated "github.com/isthmus/isthmus/conformance/simulators/modal"
)

const credential = "ak-simulated:as-simulated"

// withoutBoxes is an adapter on a server that can place nothing: for what goes wrong before.
func withoutBoxes(t *testing.T, key string) (*modal.Provider, *simulated.Server) {
	t.Helper()
	s, err := simulated.Start(simulated.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	p, err := modal.New(modal.Config{URL: s.URL(), Key: func() (string, error) { return key, nil }, Max: adapters.Resources{CPU: 8}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p, s
}

// wanted is a box that can be made.
func wanted(t *testing.T, p *modal.Provider, id string) adapters.Spec {
	t.Helper()
	template, err := p.Resolve(t.Context(), "base")
	require.NoError(t, err)
	return adapters.Spec{
		BoxID: id, Attempt: "attempt of " + id, Deployment: "deployment", Template: template,
		Resources: adapters.Resources{CPU: 1, MemoryMB: 256}, Network: adapters.Network{Internet: true},
	}
}

// TestErrorsOfCreate goes through every row of the error map.
func TestErrorsOfCreate(t *testing.T) {
	for name, c := range map[string]struct {
		fault simulated.Fault
		kind  adapters.Kind
	}{
		"throttled":         {simulated.Fault{Code: codes.ResourceExhausted, RetryAfter: 7 * time.Second}, adapters.KindRateLimited},
		"no capacity":       {simulated.Fault{Code: codes.ResourceExhausted, Message: "Insufficient capacity to create sandbox."}, adapters.KindCapacity},
		"not schedulable":   {simulated.Fault{Code: codes.ResourceExhausted, Message: "the task could not be scheduled"}, adapters.KindCapacity},
		"workspace limit":   {simulated.Fault{Code: codes.ResourceExhausted, Message: "spend limit reached"}, adapters.KindQuota},
		"bad token":         {simulated.Fault{Code: codes.Unauthenticated}, adapters.KindCredentials},
		"forbidden":         {simulated.Fault{Code: codes.PermissionDenied}, adapters.KindCredentials},
		"invalid":           {simulated.Fault{Code: codes.InvalidArgument, Message: "memory"}, adapters.KindInvalid},
		"out of range":      {simulated.Fault{Code: codes.OutOfRange}, adapters.KindInvalid},
		"name taken":        {simulated.Fault{Code: codes.AlreadyExists}, adapters.KindExists},
		"wrong state":       {simulated.Fault{Code: codes.FailedPrecondition}, adapters.KindPrecondition},
		"image gone":        {simulated.Fault{Code: codes.NotFound}, adapters.KindUnavailable},
		"unknown call":      {simulated.Fault{Code: codes.Unimplemented}, adapters.KindUnsupported},
		"outage":            {simulated.Fault{Code: codes.Unavailable}, adapters.KindUnknownOutcome},
		"internal":          {simulated.Fault{Code: codes.Internal}, adapters.KindUnknownOutcome},
		"unknown":           {simulated.Fault{Code: codes.Unknown}, adapters.KindUnknownOutcome},
		"deadline of other": {simulated.Fault{Code: codes.DeadlineExceeded}, adapters.KindUnknownOutcome},
		"a code of no one":  {simulated.Fault{Code: codes.Code(99)}, adapters.KindUnknownOutcome},
	} {
		t.Run(name, func(t *testing.T) {
			p, s := withoutBoxes(t, credential)
			c.fault.Method = "SandboxCreateV2"
			s.Faults().Add(c.fault)
			_, err := p.Create(t.Context(), wanted(t, p, "box"))
			var typed *adapters.Error
			require.ErrorAs(t, err, &typed)
			assert.Equal(t, c.kind, typed.Kind, "%v: %v", err, typed.Err)
			assert.Equal(t, c.fault.RetryAfter, typed.RetryAfter)
			if c.kind == adapters.KindUnknownOutcome { // it was made once, and looked for
				assert.Equal(t, 1, s.Calls()["SandboxCreateV2"].Calls)
				assert.NotZero(t, s.Calls()["SandboxGetFromNameV2"].Calls)
			}
		})
	}
}

// TestCallsThatMayBeMadeTwice are made again when that helps.
func TestCallsThatMayBeMadeTwice(t *testing.T) {
	p, s := withoutBoxes(t, credential)
	s.Faults().Add(simulated.Fault{Method: "SandboxListV2", Code: codes.Unavailable, Times: 2})
	s.Faults().Add(simulated.Fault{Method: "SandboxListV2", Code: codes.ResourceExhausted, RetryAfter: 200 * time.Millisecond, Times: 1})
	boxes, err := p.List(t.Context(), "deployment")
	require.NoError(t, err)
	assert.Empty(t, boxes)
	assert.Equal(t, 4, s.Calls()["SandboxListV2"].Calls)
	assert.Equal(t, 1, s.Calls()["AuthTokenGet"].Calls, "the token is kept")

	s.Faults().Add(simulated.Fault{Method: "SandboxListV2", Code: codes.ResourceExhausted, RetryAfter: time.Hour})
	_, err = p.List(t.Context(), "deployment")
	assert.Equal(t, adapters.KindRateLimited, adapters.KindOf(err))
	s.Faults().Clear()
	s.Faults().Add(simulated.Fault{Method: "SandboxListV2", Code: codes.Unavailable})
	_, err = p.List(t.Context(), "deployment")
	assert.Equal(t, adapters.KindUnavailable, adapters.KindOf(err))
}

// TestCredentials are shown to nobody, in no error.
func TestCredentials(t *testing.T) {
	for name, key := range map[string]string{"wrong secret": "ak-simulated:as-hunter2", "wrong id": "ak-hunter2:as-simulated", "no secret": "hunter2", "empty": ""} {
		t.Run(name, func(t *testing.T) {
			p, _ := withoutBoxes(t, key)
			_, err := p.List(t.Context(), "deployment")
			require.Equal(t, adapters.KindCredentials, adapters.KindOf(err), "%v", err)
			assert.NotContains(t, err.Error(), "hunter2")
		})
	}
	p, err := modal.New(modal.Config{URL: "http://127.0.0.1:1", Key: func() (string, error) { return credential, nil }})
	require.NoError(t, err)
	defer p.Close()
	_, err = p.Create(t.Context(), wanted(t, p, "box"))
	assert.Equal(t, adapters.KindUnavailable, adapters.KindOf(err), "nothing can have been made: %v", err)
	for _, address := range []string{"ftp://x", "https://user:hunter2@x", "x", "https://x/path"} {
		_, err := modal.New(modal.Config{URL: address, Key: func() (string, error) { return credential, nil }})
		require.Error(t, err, address)
		assert.NotContains(t, err.Error(), "hunter2")
	}
}

// TestRefusedBeforeModalIsCalled is what Modal is known not to have.
func TestRefusedBeforeModalIsCalled(t *testing.T) {
	p, s := withoutBoxes(t, credential)
	for name, c := range map[string]struct {
		change func(*adapters.Spec)
		says   string
	}{
		"an unknown GPU": {func(s *adapters.Spec) { s.GPU.Kind = "tpu" }, "h100"},
		"too many CPUs":  {func(s *adapters.Spec) { s.Resources.CPU = 9 }, "8 CPUs"},
		"header rules":   {func(s *adapters.Spec) { s.Network.Rules = []adapters.HeaderRule{{Host: "x"}} }, "rules"},
		"a bad name":     {func(s *adapters.Spec) { s.Network = adapters.Network{AllowOut: []string{"a b"}} }, "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := wanted(t, p, "box")
			c.change(&spec)
			_, err := p.Create(t.Context(), spec)
			require.Equal(t, adapters.KindUnsupported, adapters.KindOf(err), "%v", err)
			assert.Contains(t, err.Error(), c.says)
		})
	}
	assert.Empty(t, s.Calls())
}
