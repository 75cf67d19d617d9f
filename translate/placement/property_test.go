package placement

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
)

// world makes random pools and requirements; the seed is in the test's name, so that a failure is repeated.
type world struct{ *rand.Rand }

func each(t *testing.T, n int, check func(t *testing.T, w world)) {
	t.Helper()
	for seed := range uint64(n) {
		if !t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { check(t, world{rand.New(rand.NewPCG(seed, 4))}) }) {
			return
		}
	}
}

func (w world) maybe() bool { return w.IntN(2) == 0 }

func (w world) some(of ...string) []string {
	return slices.DeleteFunc(slices.Clone(of), func(string) bool { return w.maybe() })
}

func (w world) one(of ...string) string { return of[w.IntN(len(of))] }

func (w world) offers() []Offer {
	offers := make([]Offer, 1+w.IntN(8))
	for i := range offers {
		offers[i] = offer("p"+strconv.Itoa(i), w.pool, w.live)
		offers[i].Pool.Provider = w.one("modal", "e2b", "k8s")
	}
	return offers
}

func (w world) pool(o *Offer) {
	p := &o.Pool
	p.Isolation = Isolation{Level: w.one(append(isolations(), IsolationUnknown, "")...), Verified: w.maybe()}
	p.Max = adapters.Resources{CPU: w.IntN(2) * (2 + w.IntN(8)), MemoryMB: w.IntN(2) * (1024 + w.IntN(8192)), DiskMB: w.IntN(2) * (10240 + w.IntN(10240))}
	p.Labels = w.some("hipaa", "eu-only")
	p.RegionChoice = w.maybe()
	for _, name := range w.some("eu-1", "us-1", "eu-2") {
		p.Regions = append(p.Regions, Region{Name: name})
	}
	for _, kind := range w.some("h100", "l4") {
		p.GPUs = append(p.GPUs, GPU{Kind: kind, Max: w.IntN(3)})
	}
	p.MaxLife = Milliseconds(time.Duration(w.IntN(48)) * time.Hour)
	p.Unenforced = w.some("memory", "cpu")
	p.Concurrency = w.IntN(2) * (2 + w.IntN(8))
	p.Weight = float64(w.IntN(3))
	p.Draining = w.IntN(12) == 0
	p.Price = Price{Billing: w.one("", BillSession, BillProvisioned, BillActiveCPU), SessionHour: w.Float64(), CPUHour: w.Float64(), MemoryGiBHour: w.Float64()}
	for _, s := range switches() {
		if w.IntN(25) == 0 {
			capable(s.asks, adapters.No)(o)
		}
	}
	for _, power := range w.some(networkPowers()...) {
		capable(adapters.Feature(power), adapters.Yes)(o)
	}
	capable(adapters.FeaturePause, w.one("none", "filesystem", "memory"))(o)
	if w.IntN(15) == 0 {
		o.Template = nil
	}
}

func (w world) live(o *Offer) {
	o.Live = Live{Breaker: Breaker(w.one("", "", "", "closed", "closed", "half_open", "open")), SuccessRate: w.Float64(), Creates: w.IntN(50),
		StartP50: Milliseconds(time.Duration(w.IntN(3000)) * time.Millisecond), Sandboxes: w.IntN(5), Affine: w.IntN(3), Spread: w.IntN(3)}
	if w.IntN(12) == 0 {
		o.Live.RestUntil, o.Live.RestKind = noon().Add(time.Minute), adapters.KindRateLimited
	}
}

// narrowing is a random requirement that can only take pools away. The destination's own keys and the switches
// of the baseline are not among them, nor the hard modes, which look at the other pools.
func (w world) narrowing() string {
	return w.one("isolation="+w.one(isolations()...), "cpu="+strconv.Itoa(1+w.IntN(8)), "memory="+strconv.Itoa(1+w.IntN(8192)),
		"disk="+strconv.Itoa(1+w.IntN(20480)), "region=eu", "region=us", "region=eu-1,us", "labels=hipaa", "labels=eu-only",
		"gpu=any", "gpu=l4", "gpu-count=2", "lifetime="+strconv.Itoa(1+w.IntN(48))+"h", "limits=memory", "pause=filesystem",
		"pause=memory", "network="+w.one(networkPowers()...), "pty=true", "file-append=true", "fork=true", "verified-isolation=true",
		"exec=true", "file-read=true", "workload=gpu")
}

func (w world) preference() string {
	return w.one("rank=cost", "rank=startup,cost", "rank=reliability,startup", "rank=balanced", "near=eu; rank=region,cost",
		"rank=order", "workload=bursty", "workload=long_lived", "affinity=a", "spread=s", "affinity=a; affinity-mode=hard",
		"spread=s; spread-mode=hard", "fallback=modal", "near=eu; rank=balanced; spread=s")
}

func (w world) require(t *testing.T, from Source, line string) Stated {
	r, err := Parse(from, line, nil)
	require.NoError(t, err, line)
	return Stated{from, r}
}

func decide(t *testing.T, offers []Offer, layers ...Stated) (Plan, bool) {
	t.Helper()
	r, err := Merge(layers...)
	if err != nil {
		return Plan{}, false
	}
	plan, err := Decide(Request{Template: "base", Timeout: time.Minute, Require: r}, offers, noon(), Settings{})
	return plan, adapters.KindOf(err) != adapters.KindInvalid
}

func TestMoreRequirementsNeverAdmitMorePools(t *testing.T) {
	each(t, 2000, func(t *testing.T, w world) {
		offers := w.offers()
		base := w.require(t, Policy, w.narrowing())
		fewer, ok := decide(t, offers, base, w.require(t, Template, w.narrowing()), w.require(t, Header, w.narrowing()))
		if !ok {
			return // they contradict
		}
		more, _ := decide(t, offers, base)
		for _, name := range poolNames(fewer) {
			require.Contains(t, poolNames(more), name)
		}
	})
}

func TestRankingNeverAdmitsWhatTheFilterRemoved(t *testing.T) {
	each(t, 2000, func(t *testing.T, w world) {
		offers := w.offers()
		policy, header := w.require(t, Policy, w.narrowing()), w.require(t, Header, w.preference())
		if w.maybe() {
			policy = w.require(t, Policy, "pty=true") // a light one, so that something is left to rank
		}
		plan, ok := decide(t, offers, policy, header)
		if !ok {
			return
		}
		admitted := poolNames(plan)
		seen := map[string]bool{}
		for _, name := range admitted {
			require.False(t, seen[name], "%s is tried twice", name)
			seen[name] = true
		}
		require.Len(t, plan.Decision.Candidates, len(offers), "every pool is in the record")
		for i, c := range plan.Decision.Candidates {
			require.Equal(t, seen[c.Pool], len(c.Unmet) == 0)
			if seen[c.Pool] {
				require.Equal(t, i+1, c.Place)
				require.Equal(t, admitted[i], c.Pool)
			} else {
				require.Zero(t, c.Place)
			}
		}
		unranked, _ := decide(t, offers, policy)
		for _, name := range admitted {
			require.Contains(t, poolNames(unranked), name, "a preference let a pool in")
		}
	})
}

func TestTheOrderDependsOnTheInputAlone(t *testing.T) {
	each(t, 500, func(t *testing.T, w world) {
		offers, header := w.offers(), w.require(t, Header, w.preference())
		first, _ := decide(t, offers, header)
		again, _ := decide(t, slices.Clone(offers), header)
		require.Equal(t, first, again)
	})
}

// By an objective alone the best pool comes first, but for what counts as equal.
func TestTheBestComesFirst(t *testing.T) {
	each(t, 500, func(t *testing.T, w world) {
		offers := w.offers()
		plan, _ := decide(t, offers, w.require(t, Header, "rank=cost"))
		for i := 1; i < len(plan.Order); i++ {
			before, after := plan.Order[i-1].Cost, plan.Order[i].Cost
			if before != nil && after != nil {
				require.LessOrEqual(t, before.Hour, after.Hour*1.05+1e-9)
			}
		}
	})
}

// Whatever the later layers say, the pools that they leave are among those that the binding layers allow.
func TestNothingWidensWhatBinds(t *testing.T) {
	each(t, 2000, func(t *testing.T, w world) {
		offers := w.offers()
		bound := w.require(t, Policy, w.narrowing()+"; pools="+w.one("p0", "p0,p1", "p2,p0,p1"))
		baseline := w.require(t, Template, "exec=true; file-read=true; file-write=true")
		later := []Stated{bound, baseline, w.require(t, Metadata, w.narrowing()), w.require(t, Header, w.preference())}
		if w.maybe() {
			later[2] = w.require(t, Metadata, "provider="+w.one("modal", "e2b", "p1")+"; exec=false")
		}
		plan, ok := decide(t, offers, later...)
		if !ok {
			return
		}
		allowed, ok := decide(t, offers, bound, baseline)
		require.True(t, ok || len(plan.Order) == 0)
		for _, name := range poolNames(plan) {
			require.Contains(t, poolNames(allowed), name)
		}
	})
}
