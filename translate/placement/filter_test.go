package placement

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
)

// requirementCase holds a requirement against a pool that lacks it and one that has it.
type requirementCase struct {
	key    string // of the grammar
	line   string
	unmet  []string
	lacks  func(*Offer)
	enough func(*Offer)
}

func pool(change func(*Pool)) func(*Offer) { return func(o *Offer) { change(&o.Pool) } }

func capable(feature adapters.Feature, value string) func(*Offer) {
	return pool(func(p *Pool) { p.Capabilities[feature] = adapters.Capability{Feature: feature, Value: value} })
}

func asItIs(*Offer) {}

func requirementCases() []requirementCase {
	cases := []requirementCase{
		{"provider", "provider=y", []string{"provider"}, asItIs, pool(func(p *Pool) { p.Provider = "y" })},
		{"pools", "pools=other", []string{"pools"}, asItIs, pool(func(p *Pool) { p.Name = "other" })},
		{"region", "region=eu", []string{"region"}, asItIs, pool(func(p *Pool) { p.Regions = []Region{{Name: "eu-west-1"}} })},
		{"region", "region=eu+de", []string{"region"},
			pool(func(p *Pool) { p.Regions, p.RegionChoice = []Region{{Name: "eu-west-1"}, {Name: "us"}}, true }),
			pool(func(p *Pool) {
				p.Regions, p.RegionChoice = []Region{{Name: "us"}, {Name: "fra1", Areas: []string{"eu", "de"}}}, true
			})},
		{"region", "region=EU", []string{"region"},
			pool(func(p *Pool) { p.Regions = []Region{{Name: "eu"}, {Name: "us"}} }), // it only sometimes uses eu
			pool(func(p *Pool) { p.Regions = []Region{{Name: "eu"}, {Name: "eu-north-1"}} })},
		{"isolation", "isolation=gvisor", []string{"isolation"}, asItIs, pool(func(p *Pool) { p.Isolation.Level = "microvm" })},
		{"isolation", "isolation=process", []string{"isolation"}, pool(func(p *Pool) { p.Isolation.Level = IsolationUnknown }), asItIs},
		{"isolation", "isolation=process", []string{"isolation"}, pool(func(p *Pool) { p.Isolation.Level = "" }), pool(func(p *Pool) { p.Isolation.Level = "process" })},
		{"verified-isolation", "verified-isolation=true", []string{"verified-isolation"}, asItIs, pool(func(p *Pool) { p.Isolation.Verified = true })},
		{"network", "network=allow_domains,inject_headers", []string{"network.allow_domains", "network.inject_headers"}, asItIs,
			pool(func(p *Pool) { p.Capabilities = portable(adapters.FeatureEgressLists, adapters.FeatureInjectHeaders) })},
		{"network", "network=inject_headers", []string{"network.inject_headers"}, capable(adapters.FeatureInjectHeaders, "https"), capable(adapters.FeatureInjectHeaders, adapters.Yes)},
		{"network", "network=inject_headers_https", []string{"network.inject_headers_https"}, asItIs, capable(adapters.FeatureInjectHeaders, "https")},
		{"network", "network=allow_domains", []string{"network.allow_domains"},
			func(o *Offer) { // a detail that is stated decides
				capable(adapters.FeatureEgressLists, adapters.Yes)(o)
				capable(adapters.FeatureAllowDomains, adapters.No)(o)
			}, capable(adapters.FeatureAllowDomains, adapters.Yes)},
		{"labels", "labels=hipaa,eu-only", []string{"labels"}, pool(func(p *Pool) { p.Labels = []string{"hipaa"} }),
			pool(func(p *Pool) { p.Labels = []string{"eu-only", "x", "hipaa"} })},
		{"limits", "limits=memory", []string{"limits"}, pool(func(p *Pool) { p.Unenforced = []string{"memory"} }), asItIs},
		{"cpu", "cpu=4", []string{"cpu"}, pool(func(p *Pool) { p.Max.CPU = 2 }), pool(func(p *Pool) { p.Max.CPU = 4 })},
		{"cpu", "memory=4GiB; disk=20GiB", []string{"memory", "disk"}, pool(func(p *Pool) { p.Max = adapters.Resources{MemoryMB: 4095, DiskMB: 20479} }),
			pool(func(p *Pool) { p.Max = adapters.Resources{MemoryMB: 4096, DiskMB: 20480} })},
		{"cpu", "cpu=4; memory=4GiB", []string{"size"},
			pool(func(p *Pool) { p.Sizes = []adapters.Resources{{CPU: 2, MemoryMB: 8192}, {CPU: 8, MemoryMB: 2048}} }),
			pool(func(p *Pool) { p.Sizes = []adapters.Resources{{CPU: 8, MemoryMB: 8192}} })},
		{"gpu", "gpu=H100", []string{"gpu"}, pool(func(p *Pool) { p.GPUs = []GPU{{Kind: "l4"}} }), pool(func(p *Pool) { p.GPUs = []GPU{{Kind: "h100"}} })},
		{"gpu", "gpu-count=2", []string{"gpu-count"}, pool(func(p *Pool) { p.GPUs = []GPU{{Kind: "l4"}} }), pool(func(p *Pool) { p.GPUs = []GPU{{Kind: "l4", Max: 4}} })},
		{"gpu", "workload=gpu", []string{"gpu"}, asItIs, pool(func(p *Pool) { p.GPUs = []GPU{{Kind: "l4"}} })},
		{"lifetime", "lifetime=24h", []string{"lifetime"}, pool(func(p *Pool) { p.MaxLife = Milliseconds(time.Hour) }), pool(func(p *Pool) { p.MaxLife = Milliseconds(24 * time.Hour) })},
		{"pause", "pause=memory", []string{"pause"}, capable(adapters.FeaturePause, "filesystem"), capable(adapters.FeaturePause, "memory")},
		{"snapshot", "snapshot=true", []string{"snapshot"}, capable(adapters.FeatureSnapshot, "none"), capable(adapters.FeatureSnapshot, "memory")},
		{"file-append", "file-append=true", []string{"file-append"}, capable(adapters.FeatureFileAppend, adapters.No), asItIs},
	}
	for _, s := range switches() {
		lacks := pool(func(p *Pool) { delete(p.Capabilities, s.asks); delete(p.Capabilities, s.whole) })
		if s.whole != "" { // without files, more is missing than this key
			lacks = capable(s.asks, adapters.No)
		}
		cases = append(cases, requirementCase{s.key, s.key + "=true", []string{s.key}, lacks, capable(s.asks, adapters.Yes)})
	}
	return cases
}

func TestEachRequirementIsNamed(t *testing.T) {
	covered := map[string]bool{}
	for _, c := range requirementCases() {
		covered[c.key] = true
		t.Run(c.line, func(t *testing.T) {
			others := []Offer{offer("y"), offer("other")} // so that a destination of this name is there
			require.Equal(t, c.unmet, unmetOf(t, asks(t, c.line), append(others, offer("x", c.lacks)), "x"))
			good := offer("x", c.enough)
			require.Empty(t, unmetOf(t, asks(t, c.line), []Offer{good}, good.Pool.Name))
		})
	}
	for _, k := range Keys() {
		require.Equal(t, k.Filters(), covered[k.Name], "the key %s and the cases of the filter", k.Name)
	}
}

func TestEveryUnmetRequirementIsListed(t *testing.T) {
	req := asks(t, "isolation=microvm; network=allow_domains; gpu=any; labels=a; pause=memory; cpu=64; pty=true; lifetime=48h")
	req.Source = SourceOCI
	bare := offer("x", func(o *Offer) {
		o.Template = nil
		o.Pool.Max.CPU, o.Pool.MaxLife, o.Pool.Draining, o.Pool.Concurrency = 8, Milliseconds(time.Hour), true, 1
		o.Pool.Capabilities = nil
		o.Live = Live{Breaker: BreakerOpen, RestUntil: noon().Add(time.Minute), RestKind: adapters.KindQuota, Unhealthy: "refused", Sandboxes: 1}
	})
	require.Equal(t, []string{"template", "source", "isolation", "network.allow_domains", "labels", "cpu", "gpu", "lifetime", "pause",
		"exec", "file-read", "file-write", "pty", "draining", "healthy", "breaker", "resting", "concurrency"},
		unmetOf(t, req, []Offer{bare, offer("y")}, "x"))
}

func TestTheBaselineHoldsUnlessSwitchedOff(t *testing.T) {
	none := pool(func(p *Pool) { p.Capabilities = nil })
	noFiles := pool(func(p *Pool) { p.Capabilities = can(adapters.FeatureExec) })
	cases := []struct {
		line  string
		pool  func(*Offer)
		unmet []string
	}{
		{"", none, []string{"exec", "file-read", "file-write"}},
		{"exec=false", none, []string{"file-read", "file-write"}},
		{"exec=false; file-read=false; file-write=false", none, []string{}},
		{"exec=true", noFiles, []string{"file-read", "file-write"}},
		{"pools=x", noFiles, []string{"file-read", "file-write"}},
		{"pools=x; exec=false", none, []string{"file-read", "file-write"}},
		{"pools=x; exec=true", noFiles, []string{}}, // taken at the word
		{"provider=x; exec=false; file-read=false; file-write=false", none, []string{}},
	}
	for _, c := range cases {
		require.Equal(t, c.unmet, unmetOf(t, asks(t, c.line), []Offer{offer("x", c.pool)}, "x"), c.line)
	}
}

func TestTheNetworkFailsClosed(t *testing.T) {
	no := false
	cases := []struct {
		network store.Network
		unmet   []string
	}{
		{store.Network{}, []string{}},
		{store.Network{AllowPublicTraffic: &no, MaskRequestHost: "x"}, []string{}}, // the gateway's own
		{store.Network{AllowInternetAccess: &no}, []string{"network.internet_off"}},
		{store.Network{DenyOut: []string{"0.0.0.0/0"}}, []string{"network.internet_off"}},
		{store.Network{DenyOut: []string{"10.0.0.0/8"}}, []string{"network.deny_cidrs"}},
		{store.Network{AllowInternetAccess: &no, DenyOut: []string{"10.0.0.0/8"}}, []string{"network.internet_off", "network.deny_cidrs"}},
	}
	for _, c := range cases {
		req := Request{Template: "base", Timeout: time.Minute, Network: c.network}
		require.Equal(t, c.unmet, unmetOf(t, req, []Offer{offer("x")}, "x"))
		require.Empty(t, unmetOf(t, req, []Offer{offer("x", pool(func(p *Pool) {
			p.Capabilities = portable(adapters.FeatureInternetOff, adapters.FeatureEgressLists)
		}))}, "x"))
	}
}

// A field that restricts the network and that the filter does not know would leave a sandbox open.
func TestEveryNetworkFieldIsKnown(t *testing.T) {
	known := []string{"AllowInternetAccess", "AllowPublicTraffic", "MaskRequestHost", "AllowOut", "DenyOut", "RuleHosts"}
	var fields []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[store.Network]()) {
		fields = append(fields, f.Name)
	}
	require.ElementsMatch(t, known, fields, "a new field of store.Network: let networkNeeds say what it needs, then name it here")
}

func TestWhatThePoolGives(t *testing.T) {
	fixed := offer("fixed", pool(func(p *Pool) {
		p.Sizes = []adapters.Resources{{CPU: 8, MemoryMB: 16384}, {CPU: 4, MemoryMB: 8192}, {CPU: 1, MemoryMB: 512}}
		p.Regions, p.RegionChoice = []Region{{Name: "us-1"}, {Name: "eu-1"}, {Name: "eu-2"}}, true
		p.GPUs = []GPU{{Kind: "l4"}, {Kind: "h100", Max: 8}}
		p.Defaults = &Requirements{CPU: 3, Isolation: "gvisor"}
		p.Isolation.Level = "vm"
	}))
	choice := func(line string) Choice {
		plan, err := Decide(asks(t, line), []Offer{fixed}, noon(), Settings{})
		require.NoError(t, err)
		return plan.Order[0]
	}
	c := choice("region=eu; near=eu-2; gpu=h100,l4; gpu-count=2")
	require.Equal(t, adapters.Resources{CPU: 4, MemoryMB: 8192, DiskMB: 10240}, c.Resources, "the pool's default enlarges the template's")
	require.Equal(t, "eu-2", c.Region)
	require.Equal(t, GPU{Kind: "h100", Max: 2}, c.GPU)
	require.Equal(t, "gvisor", c.Need.Isolation)
	require.Equal(t, "us-1", choice("").Region)
	require.Equal(t, 8, choice("cpu=5").Resources.CPU)
}

func TestPoolFromADescription(t *testing.T) {
	facts := portable()
	for feature, value := range map[adapters.Feature]string{adapters.FeatureRegions: "eu, us", adapters.FeatureGPU: "none",
		adapters.FeatureImages: adapters.Yes, adapters.FeatureMaxLife: "24h"} {
		facts[feature] = adapters.Capability{Feature: feature, Value: value}
	}
	p := FromDescription("here", adapters.Description{Provider: "local", Isolation: "container", Weak: true, Max: adapters.Resources{CPU: 4}}, facts)
	require.Equal(t, "process", p.Isolation.Level)
	require.Equal(t, []Region{{Name: "eu"}, {Name: "us"}}, p.Regions)
	require.Empty(t, p.GPUs)
	require.Equal(t, Milliseconds(24*time.Hour), p.MaxLife)
	require.Equal(t, []string{SourceOCI}, p.Sources)
	require.NoError(t, CheckPools([]Pool{p}))
	weakest := FromDescription("here", adapters.Description{Isolation: "process", Weak: true}, nil)
	require.Equal(t, IsolationUnknown, weakest.Isolation.Level)
}

func TestFaultsOfPoolsAreAllNamed(t *testing.T) {
	err := CheckPools([]Pool{
		{Name: "a", Provider: "modal", Isolation: Isolation{Level: "strong"}, Weight: -1, Price: Price{Billing: "monthly"}},
		{Name: "a", Provider: "e2b", Sources: []string{"zip"}, Labels: []string{"a b"}, Price: Price{CPUActive: 2}},
		{Name: "modal", Provider: "e2b", Defaults: &Requirements{Provider: "x"}, Concurrency: -1},
	})
	for _, part := range []string{"pool a is there twice", `"strong"`, "weight", `"monthly"`, `"zip"`, `"a b"`, "0 to 1", "another pool's provider", "provider cannot be", "concurrency"} {
		require.ErrorContains(t, err, part)
	}
}
