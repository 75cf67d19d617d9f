package adapters_test

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
)

// odd is a provider of which some calls fail as the test says.
type odd struct {
	mighty
	mu   sync.Mutex
	fail map[string]error
}

func (o *odd) of(call string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.fail[call]
}

func (o *odd) set(call string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fail[call] = err
}

func (o *odd) Get(context.Context, string) (adapters.Box, error) { return adapters.Box{}, o.of("get") }
func (o *odd) Create(context.Context, adapters.Spec) (adapters.Box, error) {
	return adapters.Box{}, o.of("create")
}
func (o *odd) Pause(context.Context, string, adapters.Level) error { return o.of("pause") }
func (o *odd) Resume(context.Context, adapters.Spec) (adapters.Box, error) {
	return adapters.Box{}, o.of("resume")
}
func (o *odd) SetNetwork(context.Context, string, adapters.Network) error { return o.of("network") }
func (o *odd) Measure(context.Context, string) (adapters.Sample, error) {
	return adapters.Sample{}, o.of("measure")
}
func (o *odd) Snapshots(context.Context, string) ([]adapters.Snapshot, error) {
	return nil, o.of("snapshots")
}

func watchOdd(noted func(adapters.Drift)) (*odd, *adapters.Watched) {
	o := &odd{fail: map[string]error{}}
	o.description.Capabilities = []adapters.Capability{{Feature: adapters.FeaturePause, Value: "filesystem", Evidence: adapters.Declared}}
	return o, adapters.Watch(o, noted)
}

func misread() error {
	return adapters.Misunderstood(adapters.KindUnavailable, errors.New("hunter2"), "it is not JSON")
}

func TestWatchedHidesNoPowerAndMakesUpNone(t *testing.T) {
	for name, inner := range map[string]adapters.Provider{"none": plain{}, "all": mighty{}} {
		t.Run(name, func(t *testing.T) {
			want, got := reflect.ValueOf(adapters.PowersOf(inner)), reflect.ValueOf(adapters.PowersOf(adapters.Watch(inner, nil)))
			for i := range want.NumField() {
				require.Equal(t, want.Field(i).IsNil(), got.Field(i).IsNil(), want.Type().Field(i).Name)
			}
		})
	}
}

func TestAMarkIsSetAndTakenOff(t *testing.T) {
	var noted []adapters.Drift
	o, w := watchOdd(func(d adapters.Drift) { noted = append(noted, d) })
	ctx, pauser := t.Context(), w.Powers().Pauser
	require.NoError(t, pauser.Pause(ctx, "i1", adapters.LevelFilesystem))
	require.Empty(t, w.Drifts())

	o.set("pause", misread())
	began := time.Now().Add(-2 * time.Second)
	for range 3 {
		err := pauser.Pause(ctx, "i1", adapters.LevelFilesystem)
		require.Equal(t, adapters.KindUnavailable, adapters.KindOf(err), "the kind stays, and with it what the fleet does")
		require.Equal(t, adapters.FeaturePause, adapters.MisreadOf(err).Feature)
		require.ErrorContains(t, err, "it is not JSON. What the pool's provider answers to pause (pause) is not understood since "+w.Drifts()[0].First.Format(time.RFC3339))
		require.NotContains(t, err.Error(), "hunter2")
	}
	require.Len(t, w.Drifts(), 1)
	one := w.Drifts()[0]
	require.True(t, !one.First.Before(began) && !one.Last.Before(one.First))
	one.First, one.Last = time.Time{}, time.Time{}
	require.Equal(t, adapters.Drift{Feature: adapters.FeaturePause, Operation: "pause", Declared: "filesystem", Drifted: true, Times: 3, Total: 3, Reason: "it is not JSON"}, one)

	o.set("pause", adapters.Errorf(adapters.KindUnavailable, "an outage"))
	require.EqualError(t, pauser.Pause(ctx, "i1", adapters.LevelFilesystem), "an outage")
	require.True(t, w.Drifts()[0].Drifted, "an outage says nothing either way")
	_, err := pauser.Resume(ctx, adapters.Spec{})
	require.NoError(t, err)
	require.True(t, w.Drifts()[0].Drifted, "nor does another operation")

	o.set("pause", nil)
	require.NoError(t, pauser.Pause(ctx, "i1", adapters.LevelFilesystem))
	one = w.Drifts()[0]
	require.False(t, one.Drifted)
	require.False(t, one.Understood.IsZero() || one.Last.IsZero(), "the last time is kept")
	require.Equal(t, []bool{true, false}, []bool{noted[0].Drifted, noted[1].Drifted})
	require.Len(t, noted, 2)

	o.set("pause", misread())
	require.Error(t, pauser.Pause(ctx, "i1", adapters.LevelFilesystem))
	one = w.Drifts()[0]
	require.True(t, one.Drifted && one.Understood.IsZero())
	require.Equal(t, []int64{1, 4}, []int64{one.Times, one.Total})
}

func TestEachCallMarksItsCapability(t *testing.T) {
	o, w := watchOdd(nil)
	ctx, powers := t.Context(), w.Powers()
	for call, touched := range map[string]struct {
		feature  adapters.Feature
		declared string
		make     func() error
	}{
		"get":       {adapters.FeatureFind, "yes", func() error { _, err := w.Get(ctx, "i1"); return err }},
		"create":    {adapters.FeatureCreate, "yes", func() error { _, err := w.Create(ctx, adapters.Spec{}); return err }},
		"resume":    {adapters.FeaturePause, "filesystem", func() error { _, err := powers.Pauser.Resume(ctx, adapters.Spec{}); return err }},
		"network":   {adapters.FeatureLiveNetwork, "", func() error { return powers.Networker.SetNetwork(ctx, "i1", adapters.Network{}) }},
		"measure":   {adapters.FeatureMetrics, "yes", func() error { _, err := powers.Meter.Measure(ctx, "i1"); return err }},
		"snapshots": {adapters.FeatureSnapshot, "", func() error { _, err := powers.Snapshotter.Snapshots(ctx, "d"); return err }},
	} {
		o.set(call, misread())
		require.Equal(t, touched.feature, adapters.MisreadOf(touched.make()).Feature, call)
		found := false
		for _, d := range w.Drifts() {
			found = found || d.Feature == touched.feature && d.Declared == touched.declared && d.Drifted
		}
		require.True(t, found, "%s: %+v", call, w.Drifts())
	}
	o.set("create", adapters.Touching(adapters.FeatureExec, misread()))
	_, err := w.Create(ctx, adapters.Spec{})
	require.Equal(t, adapters.FeatureExec, adapters.MisreadOf(err).Feature, "what lies nearer is the one")
	o.set("get", adapters.Errorf(adapters.KindNotFound, "no box i1"))
	_, err = w.Get(ctx, "i1")
	require.EqualError(t, err, "no box i1")
	o.set("create", nil)
	_, err = w.Create(ctx, adapters.Spec{})
	require.NoError(t, err)
	for _, d := range w.Drifts() {
		require.Equal(t, d.Operation != "create" && d.Operation != "get", d.Drifted, "%+v", d)
	}
}

// finder is a provider that finds what it made when the answer does not say so.
type finder struct {
	plain
	misread error
}

func (f *finder) Create(ctx context.Context, _ adapters.Spec) (adapters.Box, error) {
	adapters.Overcome(ctx, f.misread)
	return adapters.Box{ID: "i1"}, nil
}

func TestWhatACreateOvercameIsMarked(t *testing.T) {
	f := &finder{misread: misread()}
	w := adapters.Watch(f, nil)
	box, err := w.Create(t.Context(), adapters.Spec{})
	require.NoError(t, err)
	require.Equal(t, "i1", box.ID)
	require.True(t, w.Drifts()[0].Drifted)
	require.Equal(t, []any{adapters.FeatureCreate, "it is not JSON"}, []any{w.Drifts()[0].Feature, w.Drifts()[0].Reason})
	f.misread = adapters.Errorf(adapters.KindUnknownOutcome, "a lost answer")
	_, err = w.Create(t.Context(), adapters.Spec{})
	require.NoError(t, err)
	require.False(t, w.Drifts()[0].Drifted)
	adapters.Overcome(t.Context(), misread()) // nobody watches
}

func TestMarksOfManyAtOnce(t *testing.T) {
	o, w := watchOdd(nil)
	o.set("get", misread())
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { _, _ = w.Get(t.Context(), "i1"); _ = w.Drifts() })
	}
	all.Wait()
	require.EqualValues(t, 50, w.Drifts()[0].Total)
}
