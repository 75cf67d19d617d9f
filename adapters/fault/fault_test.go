package fault_test

import (
	"context"
	"io"
	"io/fs"
	"net"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/fault"
	"github.com/isthmus/isthmus/envd"
)

// memory is a provider whose boxes are entries of a map.
type memory struct {
	mu    sync.Mutex
	boxes map[string]adapters.Spec
	ended map[string]chan struct{}
}

func newMemory() *memory {
	return &memory{boxes: map[string]adapters.Spec{}, ended: map[string]chan struct{}{}}
}

func (m *memory) Describe() adapters.Description { return adapters.Description{Provider: "memory"} }

func (m *memory) Resolve(context.Context, string) (adapters.Template, error) {
	return adapters.Template{Name: "base"}, nil
}

func (m *memory) Create(_ context.Context, spec adapters.Spec) (adapters.Box, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.boxes[spec.BoxID], m.ended[spec.BoxID] = spec, make(chan struct{})
	return adapters.Box{ID: spec.BoxID, Alive: true}, nil
}

func (m *memory) Get(_ context.Context, id string) (adapters.Box, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.boxes[id]; !there {
		return adapters.Box{}, adapters.Errorf(adapters.KindNotFound, "no box %s", id)
	}
	return adapters.Box{ID: id, Alive: true}, nil
}

func (m *memory) List(context.Context, string) ([]adapters.Box, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return make([]adapters.Box, len(m.boxes)), nil
}

func (m *memory) Destroy(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.boxes[id]; there {
		delete(m.boxes, id)
		close(m.ended[id])
	}
	return nil
}

func (m *memory) Reach(context.Context, string) (adapters.Endpoint, error) {
	return adapters.Endpoint{Dial: func(context.Context) (net.Conn, error) { return nil, io.EOF }}, nil
}

func (m *memory) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (m *memory) Ended(id string) (<-chan struct{}, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ended[id], nil
}

// mighty has the other powers too.
type mighty struct{ *memory }

func (mighty) Extend(context.Context, string, time.Time) error { return nil }
func (mighty) Measure(context.Context, string) (adapters.Sample, error) {
	return adapters.Sample{}, nil
}
func (mighty) Entries(context.Context, string, uint64) ([]envd.JournalEntry, error) { return nil, nil }
func (mighty) Stock(context.Context, adapters.Spec) (adapters.Box, error) {
	return adapters.Box{}, nil
}
func (mighty) Claim(context.Context, adapters.Spec) (adapters.Box, error) {
	return adapters.Box{}, nil
}
func (mighty) Unstock(context.Context, string) error                             { return nil }
func (mighty) Put(context.Context, string, string, fs.FileMode, io.Reader) error { return nil }
func (mighty) Exec(context.Context, string, []string) (adapters.Execution, error) {
	return nil, nil
}
func (mighty) Native(context.Context, string) (adapters.Inner, error) { return adapters.Inner{}, nil }
func (mighty) Pause(context.Context, string, adapters.Level) error    { return nil }
func (mighty) Resume(context.Context, adapters.Spec) (adapters.Box, error) {
	return adapters.Box{}, nil
}
func (mighty) Snapshot(context.Context, adapters.Spec, string) (adapters.Snapshot, error) {
	return adapters.Snapshot{}, nil
}
func (mighty) Snapshots(context.Context, string) ([]adapters.Snapshot, error) { return nil, nil }
func (mighty) Forget(context.Context, adapters.Snapshot) error                { return nil }
func (mighty) SetNetwork(context.Context, string, adapters.Network) error     { return nil }

func wrap(t *testing.T, inner adapters.Provider, rules ...fault.Rule) *fault.Provider {
	t.Helper()
	p, err := fault.New(inner, fault.Plan{Seed: 1, Rules: rules})
	require.NoError(t, err)
	return p
}

func TestNoPowerIsHiddenAndNoneIsMadeUp(t *testing.T) {
	for name, inner := range map[string]adapters.Provider{"some": newMemory(), "all": mighty{newMemory()}} {
		t.Run(name, func(t *testing.T) {
			want, got := reflect.ValueOf(adapters.PowersOf(inner)), reflect.ValueOf(adapters.PowersOf(wrap(t, inner)))
			for i := range want.NumField() {
				require.Equal(t, want.Field(i).IsNil(), got.Field(i).IsNil(), want.Type().Field(i).Name)
			}
		})
	}
}

// calls makes every call once.
func calls(ctx context.Context, p *fault.Provider) map[fault.Call]error {
	powers := p.Powers()
	failed := map[fault.Call]error{}
	_, failed[fault.Resolve] = p.Resolve(ctx, "base")
	_, failed[fault.Create] = p.Create(ctx, adapters.Spec{BoxID: "i1"})
	_, failed[fault.Get] = p.Get(ctx, "i1")
	_, failed[fault.List] = p.List(ctx, "d")
	endpoint, err := p.Reach(ctx, "i1")
	failed[fault.Reach] = err
	if endpoint.Dial != nil {
		_, failed[fault.Dial] = endpoint.Dial(ctx)
	}
	failed[fault.Extend] = powers.Extender.Extend(ctx, "i1", time.Now())
	_, failed[fault.Measure] = powers.Meter.Measure(ctx, "i1")
	_, failed[fault.Entries] = powers.Journal.Entries(ctx, "i1", 0)
	_, failed[fault.Stock] = powers.Stocker.Stock(ctx, adapters.Spec{})
	_, failed[fault.Claim] = powers.Stocker.Claim(ctx, adapters.Spec{})
	failed[fault.Unstock] = powers.Stocker.Unstock(ctx, "i1")
	failed[fault.Put] = powers.Bootable.Put(ctx, "i1", "/x", 0, nil)
	_, failed[fault.Exec] = powers.Bootable.Exec(ctx, "i1", nil)
	_, failed[fault.Native] = powers.Native.Native(ctx, "i1")
	failed[fault.Pause] = powers.Pauser.Pause(ctx, "i1", adapters.LevelMemory)
	_, failed[fault.Resume] = powers.Pauser.Resume(ctx, adapters.Spec{})
	_, failed[fault.Snapshot] = powers.Snapshotter.Snapshot(ctx, adapters.Spec{}, "s1")
	_, failed[fault.Snapshots] = powers.Snapshotter.Snapshots(ctx, "d")
	failed[fault.Forget] = powers.Snapshotter.Forget(ctx, adapters.Snapshot{})
	failed[fault.SetNetwork] = powers.Networker.SetNetwork(ctx, "i1", adapters.Network{})
	failed[fault.Destroy] = p.Destroy(ctx, "i1")
	return failed
}

func TestWithoutAPlanEverythingPasses(t *testing.T) {
	for call, err := range calls(t.Context(), wrap(t, mighty{newMemory()})) {
		if call == fault.Dial {
			require.ErrorIs(t, err, io.EOF, "what the provider itself says")
			continue
		}
		require.NoError(t, err, "%s", call)
	}
}

func TestAnOutageStrikesEveryCall(t *testing.T) {
	m := mighty{newMemory()}
	p := wrap(t, m, fault.Rule{Fault: fault.Outage, Calls: []fault.Call{fault.Reach}, Skip: 0, Times: 1},
		fault.Rule{Fault: fault.Outage})
	for call, err := range calls(t.Context(), p) {
		require.Equal(t, adapters.KindUnavailable, adapters.KindOf(err), "%s", call)
		require.Equal(t, 1, p.Seen()[string(call)], "%s", call)
		require.Equal(t, 1, p.Seen()[string(call)+"/outage"], "%s", call)
	}
	require.Empty(t, m.boxes)
}

func TestFaultsOfACreate(t *testing.T) {
	size := adapters.Resources{CPU: 4, MemoryMB: 1024, DiskMB: 2048}
	for name, test := range map[string]struct {
		rule fault.Rule
		kind adapters.Kind
		made *adapters.Resources
	}{
		"capacity":     {fault.Rule{Fault: fault.Capacity}, adapters.KindCapacity, nil},
		"rate limited": {fault.Rule{Fault: fault.RateLimited, RetryAfter: 7 * time.Second}, adapters.KindRateLimited, nil},
		"lost answer":  {fault.Rule{Fault: fault.LostAnswer}, adapters.KindUnknownOutcome, &size},
		"hang":         {fault.Rule{Fault: fault.Hang}, adapters.KindUnavailable, nil},
		"slow":         {fault.Rule{Fault: fault.Slow, Delay: time.Millisecond}, "", &size},
		"too slow":     {fault.Rule{Fault: fault.Slow, Delay: time.Hour}, adapters.KindUnavailable, nil},
		"wrong size":   {fault.Rule{Fault: fault.WrongSize}, "", &adapters.Resources{CPU: 2, MemoryMB: 512, DiskMB: 1024}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := wrap(t, m, test.rule).Create(ctx, adapters.Spec{BoxID: "i1", Resources: size})
			if test.kind == "" {
				require.NoError(t, err)
			} else {
				require.Equal(t, test.kind, adapters.KindOf(err))
			}
			var typed *adapters.Error
			if test.rule.RetryAfter > 0 {
				require.ErrorAs(t, err, &typed)
				require.Equal(t, test.rule.RetryAfter, typed.RetryAfter)
			}
			spec, there := m.boxes["i1"]
			require.Equal(t, test.made != nil, there)
			if there {
				require.Equal(t, *test.made, spec.Resources)
			}
		})
	}
}

func TestABoxThatDies(t *testing.T) {
	p := wrap(t, newMemory(), fault.Rule{Fault: fault.Dies, Delay: time.Millisecond, Times: 1}, fault.Rule{Fault: fault.Dies, Delay: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	for _, id := range []string{"i1", "i2"} {
		_, err := p.Create(ctx, adapters.Spec{BoxID: id})
		require.NoError(t, err)
	}
	gone, err := p.Powers().Watcher.Ended("i1")
	require.NoError(t, err)
	<-gone
	_, err = p.Get(ctx, "i1")
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(err))
	cancel()
	require.NoError(t, <-ended, "and what would die in an hour does not keep it from ending")
	_, err = p.Get(t.Context(), "i2")
	require.NoError(t, err)
}

func TestSkipTimesShareAndSeed(t *testing.T) {
	pattern := func(rule fault.Rule) string {
		p := wrap(t, newMemory(), rule)
		var text strings.Builder
		for range 200 {
			if _, err := p.Create(t.Context(), adapters.Spec{}); err != nil {
				text.WriteByte('x')
			} else {
				text.WriteByte('.')
			}
		}
		return text.String()
	}
	require.Equal(t, "..xxx"+strings.Repeat(".", 195), pattern(fault.Rule{Fault: fault.Capacity, Skip: 2, Times: 3}))
	some := pattern(fault.Rule{Fault: fault.Capacity, Share: 0.63})
	require.InDelta(t, 126, strings.Count(some, "x"), 25)
	require.Equal(t, some, pattern(fault.Rule{Fault: fault.Capacity, Share: 0.63}), "the same seed, the same dice")
}

func TestAPlanIsChanged(t *testing.T) {
	p := wrap(t, newMemory(), fault.Rule{Fault: fault.Outage})
	_, err := p.List(t.Context(), "d")
	require.Error(t, err)
	require.NoError(t, p.Change(fault.Plan{}))
	_, err = p.List(t.Context(), "d")
	require.NoError(t, err)
	require.Error(t, p.Change(fault.Plan{Rules: []fault.Rule{{Fault: "fire"}}}))
}

func TestParse(t *testing.T) {
	plan, err := fault.Parse([]byte("seed: 7\nrules:\n- fault: rate_limited\n  calls: [create]\n  share: 0.5\n  retryAfter: 3s\n- fault: slow\n  delay: 250ms\n"))
	require.NoError(t, err)
	require.Equal(t, fault.Plan{Seed: 7, Rules: []fault.Rule{
		{Fault: fault.RateLimited, Calls: []fault.Call{fault.Create}, Share: 0.5, RetryAfter: 3 * time.Second},
		{Fault: fault.Slow, Delay: 250 * time.Millisecond},
	}}, plan)
	for text, want := range map[string]string{
		"rules: [{fault: fire}]":                         `rule 1 of the plan of faults: "fire" is no fault`,
		"rules: [{fault: slow}]":                         "slow needs a delay",
		"rules: [{fault: dies, calls: [get]}]":           `dies cannot strike the call "get"`,
		"rules: [{fault: outage, share: 2}]":             "share must be from 0 to 1",
		"rules: [{fault: outage, times: -1}]":            "must not be negative",
		"rules: [{fault: outage, shares: 1}]":            "shares",
		"rules: [{fault: outage}, {fault: capacity, x}]": "the plan of faults",
	} {
		_, err := fault.Parse([]byte(text))
		require.ErrorContains(t, err, want, text)
	}
}
