package adapters_test

import (
	"context"
	"io"
	"io/fs"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
)

// plain is a provider without any power.
type plain struct{ description adapters.Description }

func (p plain) Describe() adapters.Description { return p.description }
func (plain) Resolve(context.Context, string) (adapters.Template, error) {
	return adapters.Template{}, nil
}
func (plain) Create(context.Context, adapters.Spec) (adapters.Box, error) {
	return adapters.Box{}, nil
}
func (plain) Get(context.Context, string) (adapters.Box, error)    { return adapters.Box{}, nil }
func (plain) List(context.Context, string) ([]adapters.Box, error) { return nil, nil }
func (plain) Destroy(context.Context, string) error                { return nil }
func (plain) Reach(context.Context, string) (adapters.Endpoint, error) {
	return adapters.Endpoint{}, nil
}
func (plain) Run(context.Context) error { return nil }

// mighty has every power.
type mighty struct{ plain }

func (mighty) Extend(context.Context, string, time.Time) error { return nil }
func (mighty) Measure(context.Context, string) (adapters.Sample, error) {
	return adapters.Sample{}, nil
}
func (mighty) Entries(context.Context, string, uint64) ([]envd.JournalEntry, error) { return nil, nil }
func (mighty) Ended(string) (<-chan struct{}, error)                                { return nil, nil }
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
func (mighty) Why(context.Context, string) string                  { return "" }
func (mighty) Pause(context.Context, string, adapters.Level) error { return nil }
func (mighty) Resume(context.Context, adapters.Spec) (adapters.Box, error) {
	return adapters.Box{}, nil
}
func (mighty) Snapshot(context.Context, adapters.Spec, string) (adapters.Snapshot, error) {
	return adapters.Snapshot{}, nil
}
func (mighty) Snapshots(context.Context, string) ([]adapters.Snapshot, error) { return nil, nil }
func (mighty) Forget(context.Context, adapters.Snapshot) error                { return nil }
func (mighty) SetNetwork(context.Context, string, adapters.Network) error     { return nil }
func (mighty) Native(context.Context, string) (adapters.Inner, error)         { return adapters.Inner{}, nil }

// wrapper hides everything but what it says.
type wrapper struct {
	adapters.Provider
	powers adapters.Powers
}

func (w wrapper) Powers() adapters.Powers { return w.powers }

func TestPowersAreFound(t *testing.T) {
	require.Zero(t, adapters.PowersOf(plain{}))
	found := reflect.ValueOf(adapters.PowersOf(mighty{}))
	for i := range found.NumField() {
		require.False(t, found.Field(i).IsNil(), "PowersOf does not look for %s", found.Type().Field(i).Name)
	}
	want := adapters.Powers{Extender: mighty{}}
	require.Equal(t, want, adapters.PowersOf(wrapper{mighty{}, want}), "a wrapper says itself what it has")
}

func TestCapabilities(t *testing.T) {
	own := adapters.Capability{Feature: adapters.FeaturePause, Value: "memory", Source: "https://example.com/", Date: "2026-01-02", Evidence: adapters.Declared}
	off := adapters.Capability{Feature: adapters.FeatureWatch, Value: adapters.No, Source: "probe", Evidence: adapters.Verified}
	p := plain{adapters.Description{Isolation: "unknown", InternetOff: true, Capabilities: []adapters.Capability{own, off}}}
	all := adapters.CapabilitiesOf(p)
	for feature, want := range map[adapters.Feature]bool{
		adapters.FeatureExec: true, adapters.FeatureFiles: true, adapters.FeatureInternetOff: true, adapters.FeaturePause: true,
		adapters.FeatureWatch: false, adapters.FeatureExtend: false, adapters.FeatureIsolation: false, adapters.FeatureGPU: false,
	} {
		require.Equal(t, want, all.Has(feature), "%s: %+v", feature, all[feature])
	}
	require.Equal(t, own, all[adapters.FeaturePause], "what the adapter states stays as it is")
	require.Equal(t, "memory", all.Value(adapters.FeaturePause))
	list := all.List()
	require.Len(t, list, len(all))
	require.IsIncreasing(t, features(list))

	native := adapters.CapabilitiesOf(mighty{})
	require.False(t, native.Has(adapters.FeatureExec), "envd is not ours there, so that only the adapter can know")
	require.True(t, native.Has(adapters.FeatureExtend))
}

func features(list []adapters.Capability) []string {
	var names []string
	for _, c := range list {
		names = append(names, string(c.Feature))
	}
	return names
}
