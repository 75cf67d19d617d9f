package config

import (
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/translate/placement"
)

// The providers that a pool can be of.
const (
	ProviderLocal = "local" // this machine
	ProviderE2B   = "e2b"   // any E2B-compatible server
)

// providers are all that a pool can be of.
func providers() []string {
	return []string{ProviderLocal, ProviderE2B, ProviderVercel, ProviderKubernetes, ProviderModal, ProviderDaytona}
}

// localPool is the name of the pool that is there when none is configured.
const localPool = "local"

// Pool is one account at a provider, and what it offers. What is left out is what the provider says of itself.
type Pool struct {
	// Name is what sandboxes are bound to: another account needs another name.
	Name     string `yaml:"name"`
	Provider string `yaml:"provider"` // local, e2b, kubernetes, modal, vercel or daytona

	// Credential says where the account's key is kept. Local has none.
	Credential Credential `yaml:"credential"`
	// APIURL, SandboxURL and Domain say where an e2b pool is, as E2B_API_URL, E2B_SANDBOX_URL and E2B_DOMAIN do.
	APIURL     string `yaml:"api_url"`
	SandboxURL string `yaml:"sandbox_url"`
	Domain     string `yaml:"domain"`

	// Vercel and Modal are for pools of these providers.
	Vercel Vercel `yaml:"vercel"`
	// Daytona is for pools of that provider.
	Daytona Daytona `yaml:"daytona"`
	// Kubernetes is for pools of that provider.
	Kubernetes Kubernetes `yaml:"kubernetes"`
	Modal      Modal      `yaml:"modal"`

	// Draining says that the pool gets no new sandboxes; those that it has are served.
	Draining bool `yaml:"draining"`
	// Isolation is what is known of an e2b pool's sandboxes: process, container, gvisor, vm or microvm. For a pool of
	// this machine it is gvisor, or empty for what local.isolation says.
	Isolation string   `yaml:"isolation"`
	Regions   []Region `yaml:"regions"`
	// Sizes are the only ones, Max is the largest; MaxLife is the longest life of a sandbox.
	Sizes   []Size        `yaml:"sizes"`
	Max     Size          `yaml:"max"`
	MaxLife time.Duration `yaml:"max_life"`
	// NoInternetOff says that an e2b pool cannot take the internet away from a sandbox.
	NoInternetOff bool `yaml:"no_internet_off"`
	// Templates are the pool's own names for templates, by the name that clients use.
	Templates map[string]string `yaml:"templates"`
	// Labels can be required, for example of compliance.
	Labels []string `yaml:"labels"`

	// Concurrency bounds the sandboxes at one time, CreatesAtOnce the creates, Rate the creates in a second;
	// 0: no bound. CreateTime bounds one attempt; 0: a minute.
	Concurrency   int           `yaml:"concurrency"`
	CreatesAtOnce int           `yaml:"creates_at_once"`
	Rate          float64       `yaml:"rate"`
	CreateTime    time.Duration `yaml:"create_time"`

	Price Price `yaml:"price"`
	// Weight prefers a pool among others that are equal; 0 is 1.
	Weight float64 `yaml:"weight"`
	// Require are requirements that hold here where a create states nothing of their keys.
	Require map[string]string `yaml:"require"`

	// FirstID is as in local; a second pool of this machine needs one of its own.
	FirstID int `yaml:"first_id"`
	// Fault is a file with a plan of what goes wrong in this pool, for rehearsals (docs/fault.md).
	Fault string `yaml:"fault"`
}

// Credential says where a key is kept: in a variable of the environment, or in a file. It is read again at every
// reload, and holds no key itself.
type Credential struct {
	Env  string `yaml:"env"`
	File string `yaml:"file"`
}

// Region is a place by the provider's own name, with wider areas that it lies in.
type Region struct {
	Name  string   `yaml:"name"`
	Areas []string `yaml:"areas"`
}

// Size is that of a sandbox, in virtual CPUs and MiB; 0: open.
type Size struct {
	CPU      int `yaml:"cpu"`
	MemoryMB int `yaml:"memory_mb"`
	DiskMB   int `yaml:"disk_mb"`
}

// Price is how a pool bills, in US dollars; see docs/placement.md.
type Price struct {
	Billing       string             `yaml:"billing"` // session, provisioned or active_cpu; empty: not known
	SessionHour   float64            `yaml:"session_hour"`
	CPUHour       float64            `yaml:"cpu_hour"`
	MemoryGiBHour float64            `yaml:"memory_gib_hour"`
	DiskGiBHour   float64            `yaml:"disk_gib_hour"`
	DiskFreeGiB   float64            `yaml:"disk_free_gib"`
	GPUHour       map[string]float64 `yaml:"gpu_hour"`
	PerCreate     float64            `yaml:"per_create"`
	// CPUActive is the assumed share of time with a busy CPU, 0 to 1; 0: one half.
	CPUActive float64 `yaml:"cpu_active"`
	Source    string  `yaml:"source"`
	Date      string  `yaml:"date"`
}

// Ranking is how pools that qualify are ordered.
type Ranking struct {
	// Rank is the sequence of objectives where a create states none; empty: the configured order.
	Rank []string `yaml:"rank"`
	// Tolerance says by objective which difference counts as none, Weights are those of the balanced score.
	Tolerance map[string]float64 `yaml:"tolerance"`
	Weights   map[string]float64 `yaml:"weights"`
}

// Require are requirements that the operator adds to creates, which these can narrow and never widen.
type Require struct {
	// Keys are the policies of API keys, by the key's id or name.
	Keys map[string]map[string]string `yaml:"keys"`
	// Templates are by the name that clients use.
	Templates map[string]map[string]string `yaml:"templates"`
}

// AllPools are the pools, with that of this machine when none is configured.
func (c Config) AllPools() []Pool {
	if len(c.Pools) == 0 {
		return []Pool{{Name: localPool, Provider: ProviderLocal}}
	}
	return c.Pools
}

// Settings are the ranking as placement knows it.
func (r Ranking) Settings() placement.Settings {
	return placement.Settings{Rank: r.Rank, Tolerance: r.Tolerance, Weights: r.Weights}
}

// Resources are the size as adapters know it.
func (s Size) Resources() adapters.Resources {
	return adapters.Resources{CPU: s.CPU, MemoryMB: s.MemoryMB, DiskMB: s.DiskMB}
}

// Facts puts what is configured over what the provider says of itself.
func (p Pool) Facts(said placement.Pool) placement.Pool {
	facts := said
	if len(p.Regions) > 0 {
		facts.Regions = nil
		for _, r := range p.Regions {
			facts.Regions = append(facts.Regions, placement.Region{Name: r.Name, Areas: r.Areas})
		}
	}
	for _, size := range p.Sizes {
		facts.Sizes = append(facts.Sizes, size.Resources())
	}
	if p.Max != (Size{}) {
		facts.Max = p.Max.Resources()
	}
	if p.MaxLife > 0 {
		facts.MaxLife = placement.Milliseconds(p.MaxLife)
	}
	facts.Labels, facts.Concurrency, facts.Weight, facts.Draining = p.Labels, p.Concurrency, p.Weight, p.Draining
	facts.Price = placement.Price(p.Price)
	if len(p.Require) > 0 {
		if defaults, err := placement.FromPairs(placement.PoolDefault, p.Require, nil); err == nil { // was checked
			facts.Defaults = &defaults
		}
	}
	return facts
}
