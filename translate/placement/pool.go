package placement

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// Pool is one account at a provider and what it offers: facts, as data. It holds no credential. Two pools of
// one provider are separate in everything.
type Pool struct {
	Name     string `json:"name"`
	Provider string `json:"provider"`
	// Isolation is a level of Requirements.Isolation, or unknown.
	Isolation Isolation `json:"isolation"`
	// Capabilities are the facts about the provider; what is not stated is not there.
	Capabilities adapters.Capabilities `json:"capabilities,omitempty"`
	// Sources are the kinds of templates beside portable ones: oci, native.
	Sources []string `json:"sources,omitempty"`
	// Regions are all regions in which a sandbox of this pool may lie. Empty: nobody knows.
	Regions []Region `json:"regions,omitempty"`
	// RegionChoice says that the region of a sandbox can be chosen; else it may lie in any of them.
	RegionChoice bool `json:"regionChoice,omitempty"`
	// Max bounds each size of a sandbox; 0: nothing is known. Sizes, when there are some, are the only ones.
	Max   adapters.Resources   `json:"max"`
	Sizes []adapters.Resources `json:"sizes,omitempty"`
	GPUs  []GPU                `json:"gpus,omitempty"`
	// MaxLife is the longest life of a sandbox; 0: no bound.
	MaxLife Milliseconds `json:"maxLifeMs,omitempty"`
	// Unenforced names the ceilings that are not enforced here: memory, cpu, pids, disk, counters.
	Unenforced []string `json:"unenforced,omitempty"`
	// Labels are the operator's, for example of compliance.
	Labels []string `json:"labels,omitempty"`
	// Concurrency bounds the sandboxes at one time; 0: no bound.
	Concurrency int   `json:"concurrency,omitempty"`
	Price       Price `json:"price"`
	// Weight prefers a pool among others that are equal, and scales its balanced score; 0 is 1.
	Weight float64 `json:"weight,omitempty"`
	// Draining says that no new sandbox is placed here.
	Draining bool `json:"draining,omitempty"`
	// Defaults hold for creates that state nothing of these keys; nil: none.
	Defaults *Requirements `json:"defaults,omitempty"`
}

// Isolation is how strongly a pool keeps sandboxes apart, and how that is known.
type Isolation struct {
	Level    string `json:"level"`
	Source   string `json:"source,omitempty"` // where the fact is from
	Verified bool   `json:"verified"`         // measured from inside, not only reported by the provider
}

// Evidence says how the level is known, in the words of records and of the audit.
func (i Isolation) Evidence() string {
	if i.Verified {
		return "verified"
	}
	return "provider_reported"
}

// Region is a place by the provider's own name, with the wider areas that it lies in, for example fra1 in eu.
type Region struct {
	Name  string   `json:"name"`
	Areas []string `json:"areas,omitempty"`
}

// in reports whether a region is, or lies in, a wanted one: eu is met by eu, eu-west-1 and an area eu.
func (r Region) in(wanted string) bool {
	if strings.EqualFold(r.Name, wanted) || len(r.Name) > len(wanted) && r.Name[len(wanted)] == '-' && strings.EqualFold(r.Name[:len(wanted)], wanted) {
		return true
	}
	return slices.ContainsFunc(r.Areas, func(area string) bool { return strings.EqualFold(area, wanted) })
}

// inOneOf reports whether the region is in one of the wanted ones.
func (r Region) inOneOf(wanted []string) bool { return slices.ContainsFunc(wanted, r.in) }

// GPU is a kind of GPU and how many of it one sandbox can have; 0 is 1.
type GPU struct {
	Kind string `json:"kind"`
	Max  int    `json:"max,omitempty"`
}

const anyGPU = "any"

// Levels of isolation. Unknown is below all of them.
const IsolationUnknown = "unknown"

// isolations are the levels that can be required, weakest first.
func isolations() []string { return []string{"process", "container", "gvisor", "vm", "microvm"} }

// Breaker is what a pool's breaker lets through.
type Breaker string

// The states. The zero value counts as closed; half open lets probes through, so it takes part as usual.
const (
	BreakerClosed   Breaker = "closed"
	BreakerHalfOpen Breaker = "half_open"
	BreakerOpen     Breaker = "open"
)

// Live are the figures of one pool at one moment.
type Live struct {
	Breaker Breaker `json:"breaker,omitempty"`
	// BreakerUntil is when an open breaker lets the first create through again.
	BreakerUntil time.Time `json:"breakerUntil,omitzero"`
	// RestUntil is when a pool that rests is tried again, RestKind why it rests: rate_limited or quota.
	RestUntil time.Time     `json:"restUntil,omitzero"`
	RestKind  adapters.Kind `json:"restKind,omitempty"`
	// Unhealthy says why no create is tried until the configuration is loaded again; empty: healthy.
	Unhealthy string `json:"unhealthy,omitempty"`
	// SuccessRate is the share of creates that succeeded, over the last Creates ones. No creates: not known.
	SuccessRate float64 `json:"successRate"`
	Creates     int     `json:"creates"`
	// StartP50 is the median time of a create; 0: not known.
	StartP50 Milliseconds `json:"startP50Ms,omitempty"`
	// Sandboxes counts all that live here, Starting the creates under way.
	Sandboxes int `json:"sandboxes"`
	Starting  int `json:"starting"`
	// Affine and Spread count the sandboxes here, those being made included, that carry the affinity and
	// the spread name of the request.
	Affine int `json:"affine,omitempty"`
	Spread int `json:"spread,omitempty"`
}

// Offer is one pool as a create finds it.
type Offer struct {
	Pool Pool
	Live Live
	// Template is what the pool makes of the template's name; nil: it has none of this name.
	Template *adapters.Template
}

// FromDescription returns the pool that a provider is when nothing more is known of it. Weak isolation counts
// as one level below its name.
func FromDescription(name string, d adapters.Description, capabilities adapters.Capabilities) Pool {
	fact := capabilities[adapters.FeatureIsolation]
	pool := Pool{
		Name: name, Provider: d.Provider, Capabilities: capabilities,
		Isolation:  Isolation{Level: d.Isolation, Source: fact.Source, Verified: fact.Evidence == adapters.Verified},
		Max:        d.Max,
		Unenforced: d.Unenforced,
	}
	if at := slices.Index(isolations(), d.Isolation); d.Weak {
		pool.Isolation.Level = IsolationUnknown
		if at > 0 {
			pool.Isolation.Level = isolations()[at-1]
		}
	}
	for _, region := range items(capabilities.Value(adapters.FeatureRegions)) {
		pool.Regions = append(pool.Regions, Region{Name: region})
	}
	for _, kind := range items(capabilities.Value(adapters.FeatureGPU)) {
		pool.GPUs = append(pool.GPUs, GPU{Kind: kind})
	}
	if capabilities.Has(adapters.FeatureImages) {
		pool.Sources = append(pool.Sources, SourceOCI)
	}
	if life, err := time.ParseDuration(capabilities.Value(adapters.FeatureMaxLife)); err == nil {
		pool.MaxLife = Milliseconds(life)
	}
	return pool
}

// items reads a capability's list.
func items(value string) []string {
	if !(adapters.Capability{Value: value}).Present() {
		return nil
	}
	list := strings.Split(value, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

// CheckPools returns everything that is wrong in the pools of a configuration, each with the pool's name.
func CheckPools(pools []Pool) error {
	var faults []error
	seen := map[string]bool{}
	for i, p := range pools {
		if seen[p.Name] {
			faults = append(faults, fmt.Errorf("pool %s is there twice: give each pool a name of its own", p.Name))
		}
		seen[p.Name] = true
		for _, other := range pools {
			if other.Provider == p.Name && p.Provider != p.Name {
				faults = append(faults, fmt.Errorf("pool %s has the name of another pool's provider: rename it, so that a destination means one thing", p.Name))
				break
			}
		}
		for _, err := range p.check() {
			faults = append(faults, fmt.Errorf("pool %s (number %d): %w", p.Name, i+1, err))
		}
	}
	return errors.Join(faults...)
}

func (p Pool) check() []error {
	var faults []error
	fault := func(when bool, format string, args ...any) {
		if when {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(!isName(p.Name), "the name must be %w", errName())
	fault(!isName(p.Provider), "the provider must be %w", errName())
	known := append(isolations(), IsolationUnknown, "")
	fault(!contains(known, p.Isolation.Level), "isolation %q is none of %s", p.Isolation.Level, strings.Join(known[:len(known)-1], ", "))
	fault(p.Weight < 0, "weight must not be negative")
	fault(p.Concurrency < 0, "concurrency must not be negative")
	fault(p.MaxLife < 0, "the longest life must not be negative")
	for _, s := range p.Sources {
		fault(s != SourceOCI && s != SourceNative, "source %q is none of %s, %s", s, SourceOCI, SourceNative)
	}
	for _, l := range p.Labels {
		fault(!isName(l), "label %q must be %w", l, errName())
	}
	if err := p.Price.check(); err != nil {
		faults = append(faults, err)
	}
	for _, k := range grammar() {
		fault(k.Lowest > PoolDefault && p.Defaults != nil && k.text(p.Defaults) != "", "%s cannot be a pool's default", k.Name)
	}
	return faults
}
