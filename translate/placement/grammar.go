package placement

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// Key is one key of the grammar: the one table that the parser, the joining of layers, the filter and the
// documentation are made from.
type Key struct {
	Name    string
	Group   string // the heading in the documentation
	Values  string // what may stand there
	Meaning string
	Example string
	// Lowest is the first layer that may state the key; all above it may too.
	Lowest Source
	field
	// check notes what the place lacks of this requirement, when it is stated; nil: it is no condition on one
	// place. always: also when it is not stated, because it chooses what the sandbox gets.
	check  func(c *candidate)
	always bool
}

// Narrows reports whether a later layer can only ask for more, never for less.
func (k Key) Narrows() bool { return k.narrow != nil }

// Filters reports whether the key removes places that lack something.
func (k Key) Filters() bool { return k.check != nil }

// Groups of keys.
const (
	groupDestination = "Destination"
	groupPlace       = "The place"
	groupSize        = "Size and life"
	groupFeatures    = "Features"
	groupPreference  = "Preference"
	groupCreate      = "The create"
)

// levels are the levels of pause and snapshot, lowest first.
func levels() []string { return []string{"filesystem", "memory"} }

// Keys returns the grammar in the order of the documentation.
func Keys() []Key { return slices.Clone(grammar()) }

// grammar is the table, made once and never changed.
var grammar = sync.OnceValue(table)

func table() []Key {
	keys := make([]Key, 0, 48)
	keys = append(keys, destinationKeys()...)
	keys = append(keys, placeKeys()...)
	keys = append(keys, sizeKeys()...)
	keys = append(keys, featureKeys()...)
	keys = append(keys, preferenceKeys()...)
	return append(keys, Key{Name: "idempotency-key", Group: groupCreate, Lowest: Metadata,
		Values: "printable text without ;", Example: "job-4711",
		Meaning: "a create with the same key and the same body returns the sandbox of the first one",
		field:   text(func(r *Requirements) *string { return &r.IdempotencyKey })})
}

func destinationKeys() []Key {
	return []Key{
		{Name: "provider", Group: groupDestination, Lowest: Policy, Values: "a provider or a pool", Example: "modal",
			Meaning: "is tried first; nothing that is neither this nor listed in `fallback` is tried",
			field:   same(name(func(r *Requirements) *string { return &r.Provider })), check: checkProvider},
		{Name: "fallback", Group: groupDestination, Lowest: Policy, Values: "providers or pools", Example: "e2b,local",
			Meaning: "are tried in this order after `provider`; without `provider` before all others",
			field:   names(func(r *Requirements) *[]string { return &r.Fallback })},
		{Name: "pools", Group: groupDestination, Lowest: Policy, Values: "pools", Example: "k8s,modal-a",
			Meaning: "only these, in this order unless `rank` says otherwise",
			field:   oneOf(func(r *Requirements) *[]string { return &r.Pools }, ""), check: checkPools},
	}
}

func placeKeys() []Key {
	return []Key{
		{Name: "region", Group: groupPlace, Values: "regions; + joins lists that must all hold", Example: "eu,ch",
			Meaning: "the sandbox lies in one of these; a pool that cannot promise it does not qualify",
			field:   regions(func(r *Requirements) *[][]string { return &r.Regions }), check: checkRegion, always: true},
		{Name: "isolation", Group: groupPlace, Values: "process, container, gvisor, vm or microvm", Example: "microvm",
			Meaning: "at least this strong; a pool whose isolation is unknown never qualifies",
			field:   level(func(r *Requirements) *string { return &r.Isolation }, isolations()...), check: checkIsolation},
		{Name: "verified-isolation", Group: groupPlace, Values: "true or false", Example: "true",
			Meaning: "the isolation was measured from inside, not only reported by the provider",
			field: flag(func(r *Requirements) Flag { return r.VerifiedIsolation },
				func(r *Requirements, f Flag) { r.VerifiedIsolation = f }), check: checkVerified},
		{Name: "network", Group: groupPlace, Values: "any of internet_off, allow_cidrs, deny_cidrs, allow_domains, inject_headers, inject_headers_https, egress_proxy, live_network",
			Example: "allow_domains,inject_headers",
			Meaning: "the pool can do all of this to the network; what the create's own network fields need is added. inject_headers_https: headers in HTTPS requests alone are enough",
			field:   all(func(r *Requirements) *[]string { return &r.Network }, networkPowers()...), check: checkNetwork},
		{Name: "labels", Group: groupPlace, Values: "labels", Example: "eu-only,hipaa",
			Meaning: "the pool carries all of these labels, for example of compliance",
			field:   all(func(r *Requirements) *[]string { return &r.Labels }), check: checkLabels},
		{Name: "limits", Group: groupPlace, Values: "any of cpu, memory, pids, disk, counters", Example: "memory,pids",
			Meaning: "the pool really enforces these ceilings",
			field:   all(func(r *Requirements) *[]string { return &r.Limits }, "cpu", "memory", "pids", "disk", "counters"), check: checkLimits},
	}
}

func sizeKeys() []Key {
	return []Key{
		{Name: "cpu", Group: groupSize, Values: "a number of virtual CPUs", Example: "4", Meaning: "at least so many; more than the template's own enlarges the sandbox",
			field: number(func(r *Requirements) *int { return &r.CPU }, 1024), check: checkSize, always: true},
		{Name: "memory", Group: groupSize, Values: "a size, in MiB without a unit", Example: "4GiB", Meaning: "at least so much memory",
			field: size(func(r *Requirements) *int { return &r.MemoryMB })},
		{Name: "disk", Group: groupSize, Values: "a size, in MiB without a unit", Example: "20GiB", Meaning: "at least so much disk",
			field: size(func(r *Requirements) *int { return &r.DiskMB })},
		{Name: "gpu", Group: groupSize, Values: "kinds of GPU, or any", Example: "h100,a100-80", Meaning: "one of these kinds",
			field: oneOf(func(r *Requirements) *[]string { return &r.GPU }, anyGPU), check: checkGPU},
		{Name: "gpu-count", Group: groupSize, Values: "a number", Example: "2", Meaning: "at least so many GPUs of one kind; `gpu=any` if no kind is given",
			field: number(func(r *Requirements) *int { return &r.GPUCount }, 64)},
		{Name: "lifetime", Group: groupSize, Values: "a time, in seconds without a unit", Example: "24h",
			Meaning: "the pool lets a sandbox become this old; the create's own timeout is always required",
			field:   span(func(r *Requirements) *time.Duration { return &r.Lifetime }), check: checkLifetime},
	}
}

// featureKeys are the keys that are on or off. exec, file-read and file-write are needed unless they are
// switched off: the portable baseline.
func featureKeys() []Key {
	keys := []Key{
		{Name: "pause", Group: groupFeatures, Values: "filesystem or memory; true is filesystem", Example: "memory", Meaning: "can be paused, keeping at least this",
			field: depth(func(r *Requirements) *string { return &r.Pause }), check: checkPause},
		{Name: "snapshot", Group: groupFeatures, Values: "filesystem or memory; true is filesystem", Example: "filesystem", Meaning: "snapshots that keep at least this",
			field: depth(func(r *Requirements) *string { return &r.Snapshot }), check: checkSnapshot},
	}
	for _, s := range switches() {
		keys = append(keys, Key{Name: s.key, Group: groupFeatures, Values: "true or false", Example: "true", Meaning: s.meaning,
			field: feature(s.key), check: func(c *candidate) { checkSwitch(c, s) }})
	}
	return keys
}

// featureSwitch ties a key to the capability that it asks for. whole decides where the capability itself is
// not stated.
type featureSwitch struct {
	key         string
	asks, whole adapters.Feature
	meaning     string
}

// The keys of the portable baseline.
const (
	keyExec      = "exec"
	keyFileRead  = "file-read"
	keyFileWrite = "file-write"
)

func baseline() []string { return []string{keyExec, keyFileRead, keyFileWrite} }

func switches() []featureSwitch {
	return []featureSwitch{
		{keyExec, adapters.FeatureExec, "", "runs programs (baseline)"},
		{keyFileRead, adapters.FeatureFileRead, adapters.FeatureFiles, "reads files (baseline)"},
		{keyFileWrite, adapters.FeatureFileWrite, adapters.FeatureFiles, "writes files (baseline)"},
		{"file-list", adapters.FeatureFileList, adapters.FeatureFiles, "lists folders"},
		{"file-delete", adapters.FeatureFileDelete, adapters.FeatureFiles, "deletes files"},
		{"file-append", adapters.FeatureFileAppend, adapters.FeatureFiles, "appends to files"},
		{"file-parents", adapters.FeatureFileParents, adapters.FeatureFiles, "makes missing folders above a file"},
		{"pty", adapters.FeaturePTY, "", "terminals"},
		{"stdin", adapters.FeatureStdin, "", "input of running programs"},
		{"watch", adapters.FeatureWatch, "", "changes of folders as they happen"},
		{"ordered-output", adapters.FeatureOrderedOutput, "", "the output of a stream arrives in its order"},
		{"confirmed-cancel", adapters.FeatureConfirmedCancel, "", "after a kill was answered, the process is gone"},
		{"ports", adapters.FeaturePorts, "", "any TCP port is reachable through the gateway"},
		{"direct-ports", adapters.FeatureDirectPorts, "", "a port has an address at the provider itself"},
		{"leased-ports", adapters.FeatureLeasedPorts, "", "such an address ends after a time"},
		{"direct-envd", adapters.FeatureDirectEnvd, "", "clients may reach envd past the facade"},
		{"extend", adapters.FeatureExtend, "", "the provider's own deadline can be moved"},
		{"metrics", adapters.FeatureMetrics, "", "what a sandbox uses can be told"},
		{"logs", adapters.FeatureLogs, "", "what its processes did is noted"},
		{"fork", adapters.FeatureFork, "", "a running sandbox can be copied"},
		{"volumes", adapters.FeatureVolumes, "", "volumes can be mounted"},
	}
}

func preferenceKeys() []Key {
	return []Key{
		{Name: "rank", Group: groupPreference, Values: "order, or any of cost, startup, reliability, balanced, region, shape", Example: "cost,startup",
			Meaning: "what decides among the pools that qualify, the first first; what is about equal goes on to the next",
			field:   ranking(func(r *Requirements) *[]string { return &r.Rank })},
		{Name: "near", Group: groupPreference, Values: "regions", Example: "eu",
			Meaning: "preferred regions: which one is used where a pool has several, and what `rank=region` looks at",
			field:   names(func(r *Requirements) *[]string { return &r.Near })},
		{Name: "workload", Group: groupPreference, Values: "bursty, long_lived or gpu", Example: "bursty",
			Meaning: "the shape of the work: sets the CPU-active share and, without `rank`, `rank=shape,cost`; gpu also means `gpu=any`",
			field:   choice(func(r *Requirements) *string { return &r.Workload }, workloadBursty, workloadLongLived, workloadGPU)},
		{Name: "cpu-active", Group: groupPreference, Values: "percent, 1 to 100", Example: "20", Meaning: "the share of time with a busy CPU that costs are estimated with",
			field: replacing(number(func(r *Requirements) *int { return &r.CPUActive }, 100))},
		{Name: "affinity", Group: groupPreference, Values: "a name", Example: "build-7", Meaning: "sandboxes with the same name go to the same pool",
			field: name(func(r *Requirements) *string { return &r.Affinity })},
		{Name: "affinity-mode", Group: groupPreference, Values: "soft or hard", Example: "hard", Meaning: "soft (the default): where possible; hard: or not at all",
			field: choice(func(r *Requirements) *string { return &r.AffinityMode }, modeSoft, modeHard)},
		{Name: "spread", Group: groupPreference, Values: "a name", Example: "crawler", Meaning: "sandboxes with the same name are spread evenly over the pools",
			field: name(func(r *Requirements) *string { return &r.Spread })},
		{Name: "spread-mode", Group: groupPreference, Values: "soft or hard", Example: "hard", Meaning: "soft (the default): where possible; hard: no pool ever has two more than another",
			field: choice(func(r *Requirements) *string { return &r.SpreadMode }, modeSoft, modeHard)},
		{Name: "class", Group: groupPreference, Values: "a workload class of the configuration", Example: "ci",
			Meaning: "stands for the requirements that the class names; keys beside it in the same place go before",
			field:   name(func(r *Requirements) *string { return &r.Class })},
	}
}

// replacing makes a key a mere preference.
func replacing(f field) field {
	f.narrow = nil
	return f
}

// ranking is a sequence of objectives, or order alone.
func ranking(at func(*Requirements) *[]string) field {
	f := names(at, objectives()...)
	list := f.set
	f.set = func(r *Requirements, text string) error {
		var read Requirements
		if err := list(&read, text); err != nil {
			return err
		}
		if len(read.Rank) > 1 && contains(read.Rank, RankOrder) {
			return fmt.Errorf("%s alone, or other objectives without it", RankOrder)
		}
		*at(r) = read.Rank
		return nil
	}
	return f
}

// text is any printable text that needs no quoting in a header.
func text(at func(*Requirements) *string) field {
	return field{
		set: func(r *Requirements, value string) error {
			for _, c := range []byte(value) {
				if c < ' ' || c > '~' || c == ';' {
					return fmt.Errorf("printable ASCII without ;")
				}
			}
			if value == "" {
				return fmt.Errorf("something")
			}
			*at(r) = value
			return nil
		},
		text: func(r *Requirements) string { return *at(r) },
	}
}
