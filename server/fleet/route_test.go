package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/translate/placement"
)

// routed is a bench with several pools, each a provider of its own.
type routed struct {
	*bench
	fakes map[string]*fake
	pools []Pool
}

// startPools makes a running fleet with pools of these names, in this order.
func startPools(t testing.TB, adjust func(*Config), names ...string) *routed {
	t.Helper()
	r := &routed{fakes: map[string]*fake{}}
	for _, name := range names {
		r.fakes[name] = newFake()
		t.Cleanup(r.fakes[name].health.Close)
		r.pools = append(r.pools, Pool{Name: name, Provider: r.fakes[name]})
	}
	r.bench = start(t, func(c *Config) {
		c.Pools = append([]Pool(nil), r.pools...)
		if adjust != nil {
			adjust(c)
		}
	})
	return r
}

// facts changes what is said of one pool, before it is started.
func facts(pool *Pool, change func(*placement.Pool)) {
	said := placement.FromDescription(pool.Name, pool.Provider.Describe(), adapters.CapabilitiesOf(pool.Provider))
	change(&said)
	pool.Facts = said
}

// live is the number of boxes in all pools.
func (r *routed) live() int {
	sum := 0
	for _, f := range r.fakes {
		sum += f.count()
	}
	return sum
}

func failing(kind adapters.Kind) func(context.Context, adapters.Spec) error {
	return func(context.Context, adapters.Spec) error { return adapters.Errorf(kind, "pool says %s", kind) }
}

// asking is a request that states requirements.
func asking(t testing.TB, line string) placement.Request {
	t.Helper()
	req := request()
	var err error
	req.Require, err = placement.Parse(placement.Header, line, nil)
	require.NoError(t, err)
	return req
}

func TestFailover(t *testing.T) {
	cases := map[adapters.Kind]bool{
		adapters.KindInvalid: false, adapters.KindPrecondition: false, adapters.KindInternal: false,
		adapters.KindNotFound: true, adapters.KindExists: true, adapters.KindCapacity: true, adapters.KindRateLimited: true,
		adapters.KindQuota: true, adapters.KindUnavailable: true, adapters.KindCredentials: true, adapters.KindUnsupported: true,
		adapters.KindDeclined: true, adapters.KindUnknownOutcome: true,
	}
	for kind, next := range cases {
		t.Run(string(kind), func(t *testing.T) {
			r := startPools(t, nil, "a", "b")
			r.fakes["a"].before = failing(kind)
			sb, err := r.fleet.Create(t.Context(), request())
			if !next {
				requireKind(t, kind, err)
				require.Zero(t, r.fakes["b"].creates)
				require.Zero(t, r.live())
				return
			}
			require.NoError(t, err)
			require.Equal(t, "b", sb.Pool)
			require.Equal(t, 1, r.live())
			decision, err := r.fleet.Decision(t.Context(), sb.ID)
			require.NoError(t, err)
			require.Len(t, decision.Attempts, 2)
			require.Equal(t, kind, decision.Attempts[0].Kind)
			require.Equal(t, sb.Attempt, decision.Attempts[1].ID)
			require.NotEqual(t, decision.Attempts[0].ID, decision.Attempts[1].ID)
			require.Equal(t, "a", decision.Candidates[0].Pool)
			var stages []string
			for _, stage := range decision.Stages {
				require.False(t, stage.Ended.Before(stage.Began))
				stages = append(stages, stage.Name)
			}
			require.Equal(t, []string{placement.StageMatch, placement.StageRank, placement.StageTry, placement.StageRun}, stages)
		})
	}
}

// Who may not have a sandbox any more gets it from no further pool, and the record says why.
func TestWhoIsNotAllowedAnyMoreIsNotServed(t *testing.T) {
	r := startPools(t, nil, "a", "b", "c")
	r.fakes["a"].before, r.fakes["b"].before = failing(adapters.KindCapacity), failing(adapters.KindCapacity)
	req, asked := request(), 0
	req.Allowed = func(context.Context) error {
		if asked++; asked == 2 {
			return adapters.Errorf(adapters.KindPrecondition, "not any more")
		}
		return nil
	}
	_, err := r.fleet.Create(t.Context(), req)
	requireKind(t, adapters.KindPrecondition, err)
	require.Equal(t, 2, asked, "before every attempt but the first")
	require.Equal(t, 1, r.fakes["b"].creates)
	require.Zero(t, r.fakes["c"].creates)
	require.Zero(t, r.live())
}

func TestOrderIsWhatIsAsked(t *testing.T) {
	r := startPools(t, func(c *Config) {
		for i, price := range []float64{3, 1, 2} {
			facts(&c.Pools[i], func(p *placement.Pool) {
				p.Price = placement.Price{Billing: placement.BillSession, SessionHour: price}
				p.Regions = []placement.Region{{Name: []string{"us", "eu-west-1", "eu-north-1"}[i]}}
			})
		}
	}, "a", "b", "c")
	for line, want := range map[string]string{
		"": "a", "rank=cost": "b", "region=eu": "b", "pools=c,a": "c", "provider=c": "c", "fallback=b": "b", "pools=a,c; rank=cost": "c",
	} {
		require.Equal(t, want, r.create(asking(t, line)).Pool, "%q", line)
	}
}

func TestWhatNoPoolHas(t *testing.T) {
	r := startPools(t, nil, "a", "b")
	_, err := r.fleet.Create(t.Context(), asking(t, "isolation=microvm"))
	requireKind(t, adapters.KindUnsupported, err)
	var refusal *placement.Refusal
	require.ErrorAs(t, err, &refusal)
	require.Len(t, refusal.Details().Attempts, 2)
	require.Contains(t, err.Error(), "a lacks isolation=microvm")
	all, _ := r.fleet.All(t.Context())
	require.Empty(t, all, "nothing was begun")

	for _, f := range r.fakes {
		f.with(func(f *fake) { f.before = failing(adapters.KindCapacity) })
	}
	_, err = r.fleet.Create(t.Context(), request())
	requireKind(t, adapters.KindCapacity, err)
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, adapters.KindCapacity, refusal.Details().Attempts[1].Kind)
	_, err = r.fleet.Create(t.Context(), asking(t, "pools=z"))
	requireKind(t, adapters.KindInvalid, err)
	req := request()
	req.Template = "nope"
	_, err = r.fleet.Create(t.Context(), req)
	requireKind(t, adapters.KindNotFound, err)
	require.ErrorContains(t, err, "there is base", "the pool's own words say more")
}

// The scenario that the breakers are for: one pool fails often, one hangs, one is rate-limited, one is good.
func TestBurstOverBadPools(t *testing.T) {
	r := startPools(t, func(c *Config) {
		c.Pools[1].CreateTime = 100 * time.Millisecond
		c.Pools[1].CreatesAtOnce = 4
	}, "a", "b", "c", "d")
	r.fakes["a"].before = func(context.Context, adapters.Spec) error {
		if rand.Float64() < 0.63 {
			return adapters.Errorf(adapters.KindCapacity, "full")
		}
		return nil
	}
	r.fakes["b"].before = func(ctx context.Context, _ adapters.Spec) error { <-ctx.Done(); return ctx.Err() }
	r.fakes["c"].before = func(context.Context, adapters.Spec) error {
		return &adapters.Error{Kind: adapters.KindRateLimited, RetryAfter: time.Minute}
	}
	var good atomic.Int64
	together(100, func(int) {
		if _, err := r.fleet.Create(t.Context(), request()); err == nil {
			good.Add(1)
		}
	})
	require.EqualValues(t, 100, good.Load())
	require.Equal(t, 100, r.live(), "no duplicate, nothing left over")
	t.Logf("requests: a %d, b %d, c %d, d %d", r.fakes["a"].creates, r.fakes["b"].creates, r.fakes["c"].creates, r.fakes["d"].creates)
	// As many as open the breaker, those that had been let through by then, and a probe of the half-open breaker or two.
	for name, most := range map[string]int{"b": breakerRow + 4 + 3, "c": 100} {
		require.LessOrEqual(t, r.fakes[name].creates, most, name)
	}
	before := r.fakes["b"].creates
	for range 50 {
		r.create(request())
	}
	require.Equal(t, before, r.fakes["b"].creates, "nobody asks a pool whose breaker is open")
}

func TestPoolsOwnBounds(t *testing.T) {
	r := startPools(t, func(c *Config) {
		facts(&c.Pools[0], func(p *placement.Pool) { p.Concurrency = 3 })
		c.Pools[1].CreateRate = 2
	}, "a", "b", "c")
	together(20, func(int) { r.create(request()) })
	require.LessOrEqual(t, r.fakes["a"].count(), 3, "also when all come at the same time")
	require.LessOrEqual(t, r.fakes["b"].count(), 3)
	require.Equal(t, 20, r.live())
	for _, state := range r.fleet.States() {
		require.Equal(t, placement.BreakerClosed, state.Live.Breaker, "our own bounds are no fault of %s", state.Name)
		require.Equal(t, r.fakes[state.Name].count(), state.Live.Sandboxes)
	}
}

func TestBoxThatFallsShort(t *testing.T) {
	r := startPools(t, func(c *Config) {
		c.Measure = func(_ context.Context, pool, _ string) (placement.Measured, error) {
			cpu := map[string]int{"a": 1, "b": 4}[pool]
			return placement.Measured{Resources: adapters.Resources{CPU: cpu}}, nil
		}
	}, "a", "b")
	sb := r.create(asking(t, "cpu=4"))
	require.Equal(t, "b", sb.Pool)
	require.Equal(t, 4, sb.CPU)
	require.Equal(t, 4, r.fakes["b"].box(sb.ID).spec.Resources.CPU)
	require.Zero(t, r.fakes["a"].count(), "it was destroyed")
	decision, err := r.fleet.Decision(t.Context(), sb.ID)
	require.NoError(t, err)
	require.Equal(t, placement.FailedPostCheck, decision.Attempts[0].Kind)
	require.Equal(t, []placement.Unmet{{Requirement: "cpu", Wanted: "4", Has: "1"}}, decision.Attempts[0].Unmet)

	r.fakes["a"].with(func(f *fake) {
		f.onDestroy = func(string) error { return adapters.Errorf(adapters.KindUnavailable, "away") }
	})
	_, err = r.fleet.Create(t.Context(), asking(t, "cpu=4"))
	requireKind(t, adapters.KindUnavailable, err)
	require.Equal(t, 1, r.fakes["b"].creates, "not tried elsewhere while the first is there")
	r.fakes["a"].with(func(f *fake) { f.onDestroy = nil })
	require.Eventually(t, func() bool {
		r.fleet.Reconcile(context.Background())
		return r.fakes["a"].count() == 0
	}, 30*time.Second, 10*time.Millisecond)
}

// What a crash, or an answer that was lost, left of a create was never checked: it is not handed out.
func TestAHalfDoneCreateIsNotAdoptedUnchecked(t *testing.T) {
	seen := atomic.Int64{}
	seen.Store(1)
	r := startPools(t, func(c *Config) {
		c.Measure = func(context.Context, string, string) (placement.Measured, error) {
			return placement.Measured{Resources: adapters.Resources{CPU: int(seen.Load())}}, nil
		}
	}, "a")
	r.fakes["a"].with(func(f *fake) {
		f.getErr = adapters.Errorf(adapters.KindUnavailable, "away")
		f.after = func(context.Context, adapters.Spec) error { return context.DeadlineExceeded }
	})
	req := asking(t, "cpu=4")
	req.IdempotencyKey = "key"
	_, err := r.fleet.Create(t.Context(), req)
	requireKind(t, adapters.KindUnknownOutcome, err)
	all, err := r.fleet.All(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	r.fakes["a"].with(func(f *fake) { f.getErr, f.after = nil, nil })

	r.fleet.Reconcile(t.Context())
	require.Eventually(t, func() bool {
		left, err := r.fleet.All(t.Context())
		return err == nil && len(left) == 0 && r.fakes["a"].count() == 0
	}, 30*time.Second, 10*time.Millisecond, "the box is destroyed, whatever it is")
	seen.Store(4)
	sb, err := r.fleet.Create(t.Context(), req)
	require.NoError(t, err, "the key is free")
	require.NotEqual(t, all[0].ID, sb.ID)
}

func TestAffinityAndSpread(t *testing.T) {
	r := startPools(t, nil, "a", "b")
	first := r.create(asking(t, "pools=b; affinity=build"))
	require.Equal(t, "b", first.Pool)
	require.Equal(t, "b", r.create(asking(t, "affinity=build")).Pool)
	require.Equal(t, "a", r.create(asking(t, "affinity=other")).Pool)
	for range 4 {
		r.create(asking(t, "spread=crawler"))
	}
	all, err := r.fleet.All(t.Context())
	require.NoError(t, err)
	spread := map[string]int{}
	for _, sb := range all {
		if sb.Spread == "crawler" {
			spread[sb.Pool]++
		}
	}
	require.Equal(t, map[string]int{"a": 2, "b": 2}, spread)
}

func TestDecisionsHoldNoSecret(t *testing.T) {
	r := startPools(t, nil, "a", "b")
	r.fakes["a"].before = failing(adapters.KindUnavailable)
	req := request()
	req.EnvVars = map[string]string{"TOKEN": "hush-hush"}
	sb := r.create(req)
	decision, err := r.fleet.Decision(t.Context(), sb.ID)
	require.NoError(t, err)
	text, err := json.Marshal(decision)
	require.NoError(t, err)
	token, _ := r.fleet.Tokens(sb)
	for _, secret := range []string{"hush-hush", token, r.fleet.cfg.Secrets.Transport(sb.BoxID)} {
		require.NotContains(t, string(text), secret)
	}
	require.NoError(t, r.fleet.Kill(t.Context(), "team", sb.ID))
	_, err = r.fleet.Decision(t.Context(), sb.ID)
	require.NoError(t, err, "it is known after the end too")
	_, err = r.fleet.Decision(t.Context(), "nothing")
	requireKind(t, adapters.KindNotFound, err)
}

// Whatever happens to rankings, a live sandbox stays where it is.
func TestRankingsNeverMoveASandbox(t *testing.T) {
	r := startPools(t, nil, "a", "b", "c")
	homes := map[string]string{}
	for i := range 60 {
		set := append([]Pool(nil), r.pools...)
		rand.Shuffle(len(set), func(i, j int) { set[i], set[j] = set[j], set[i] })
		for j := range set {
			facts(&set[j], func(p *placement.Pool) {
				p.Price = placement.Price{Billing: placement.BillSession, SessionHour: rand.Float64()}
				p.Draining, p.Weight = j > 0 && rand.IntN(3) == 0, rand.Float64()
			})
		}
		rank := []string{placement.RankCost, placement.RankStartup, placement.RankReliability, placement.RankBalanced}[i%4]
		require.NoError(t, r.fleet.Reload(t.Context(), set, placement.Settings{Rank: []string{rank}}))
		sb := r.create(request())
		homes[sb.ID] = sb.Pool
		for id, home := range homes {
			now, err := r.fleet.Sandbox(t.Context(), "team", id)
			require.NoError(t, err)
			require.Equal(t, home, now.Pool)
			require.NotNil(t, r.fakes[home].box(id))
			_, err = r.fleet.Route(t.Context(), id)
			require.NoError(t, err)
		}
	}
	require.Equal(t, len(homes), r.live())
}

// BenchmarkDecisionOverManyPools is the cost of routing: the decision, and the write of the binding.
func BenchmarkDecisionOverManyPools(b *testing.B) {
	var names []string
	for i := range 50 {
		names = append(names, fmt.Sprintf("p%02d", i))
	}
	r := startPools(b, nil, names...)
	req := asking(b, "rank=cost,startup,reliability; lifetime=1h")
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		planned, err := r.fleet.plan(b.Context(), req)
		require.NoError(b, err)
		intent := r.fleet.intent(newID(), req, planned.order[0])
		_, err = r.store.Sandboxes.Begin(b.Context(), store.Intent{Sandbox: intent})
		require.NoError(b, err)
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
}

// mute does not answer when it is asked for a template.
type mute struct{ *fake }

func (mute) Resolve(ctx context.Context, _ string) (adapters.Template, error) {
	<-ctx.Done()
	return adapters.Template{}, ctx.Err()
}

func TestPoolThatDoesNotSayWhatItHas(t *testing.T) {
	r := startPools(t, func(c *Config) { c.Pools[0].Provider = mute{c.Pools[0].Provider.(*fake)} }, "a", "b")
	require.Equal(t, "b", r.create(request()).Pool)
	began := time.Now()
	require.Equal(t, "b", r.create(request()).Pool)
	require.Less(t, time.Since(began), resolveTime, "it holds up one create, not all")
	_, err := r.fleet.Create(t.Context(), asking(t, "pools=a"))
	requireKind(t, adapters.KindCapacity, err)
}

func TestStoredIntentNamesThePoolThatIsTried(t *testing.T) {
	r := startPools(t, nil, "a", "b")
	seen := make(chan store.Sandbox, 2)
	note := func(outcome error) func(context.Context, adapters.Spec) error {
		return func(_ context.Context, spec adapters.Spec) error {
			record, _ := r.store.Sandboxes.Get(context.Background(), spec.BoxID)
			seen <- record
			return outcome
		}
	}
	r.fakes["a"].before, r.fakes["b"].before = note(adapters.Errorf(adapters.KindCapacity, "full")), note(nil)
	sb := r.create(request())
	first, second := <-seen, <-seen
	require.Equal(t, "a", first.Pool)
	require.Equal(t, "b", second.Pool)
	require.Equal(t, sb.ID, first.ID, "one id over all attempts")
	require.Equal(t, sb.ID, second.ID)
	require.NotEqual(t, first.Attempt, second.Attempt)
}
