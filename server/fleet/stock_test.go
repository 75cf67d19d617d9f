package fleet

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/translate/placement"
)

// startStocked is a bench whose provider keeps two boxes ready, and waits until they are.
func startStocked(t *testing.T, adjust func(*Config, *stocking)) (*bench, *stocking) {
	t.Helper()
	provider := &stocking{version: "1"}
	b := start(t, func(c *Config) {
		if provider.fake == nil {
			provider.fake = c.Pools[0].Provider.(*fake)
		}
		c.Pools[0].Provider, c.Pools[0].Warm = provider, map[string]int{"base": 2}
		if adjust != nil {
			adjust(c, provider)
		}
	})
	return b, provider
}

// full waits until that many boxes are ready, as the fleet sees it too.
func (b *bench) full(p *stocking, boxes int) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		return p.inStock() == boxes && b.fleet.Counts().Stock["one"].Ready == int64(boxes)
	}, 30*time.Second, time.Millisecond)
}

func TestCreateFromStock(t *testing.T) {
	b, p := startStocked(t, nil)
	b.full(p, 2)
	sb := b.create(request())
	require.Zero(t, p.creates, "nothing was made for it")
	box := p.box(sb.BoxID)
	require.Equal(t, sb.Attempt, box.Attempt)
	require.Equal(t, sb.ID, box.SandboxID)
	require.Equal(t, map[string]string{"A": "template", "B": "request"}, box.spec.Envd.EnvVars)
	require.True(t, box.deadline.After(sb.EndAt.Add(backstopSlack-time.Second)))
	token, _ := b.fleet.Tokens(sb)
	require.Equal(t, token, box.spec.Envd.AccessToken)
	route, err := b.fleet.Route(t.Context(), sb.ID)
	require.NoError(t, err)
	require.Equal(t, box.spec.Envd.Transport, route.Transport)

	b.full(p, 2)
	require.Equal(t, StockCounts{Ready: 2, Claims: 1}, b.fleet.Counts().Stock["one"])
	require.NoError(t, b.fleet.Kill(t.Context(), "team", sb.ID))
	require.Equal(t, 2, p.count())
}

func TestCreateThatNothingInStockFits(t *testing.T) {
	no := false
	b, p := startStocked(t, nil)
	b.full(p, 2)
	req := request()
	req.Network.AllowInternetAccess = &no
	b.create(req)
	require.Equal(t, 1, p.creates)
	require.Zero(t, p.claims)
	require.Zero(t, b.fleet.Counts().Stock["one"].Misses)
	require.Equal(t, 2, p.inStock())
}

func TestStockServesEachBoxOnce(t *testing.T) {
	b, p := startStocked(t, nil)
	b.full(p, 2)
	var mu sync.Mutex
	boxes := map[string]bool{}
	together(20, func(int) {
		sb := b.create(request())
		mu.Lock()
		defer mu.Unlock()
		boxes[sb.BoxID] = true
		require.Equal(t, sb.ID, p.box(sb.BoxID).SandboxID)
	})
	require.Len(t, boxes, 20)
	b.full(p, 2)
	require.Equal(t, 22, p.count())
	counts := b.fleet.Counts().Stock["one"]
	require.EqualValues(t, 20, counts.Claims+counts.Misses)
	require.EqualValues(t, 20-p.creates, counts.Claims)
}

// Two facades of one deployment share a provider, each with records of its own.
func TestTwoFacadesClaimEachBoxOnce(t *testing.T) {
	b, p := startStocked(t, nil)
	b.full(p, 2)
	other := start(t, func(c *Config) {
		c.Secrets = b.fleet.cfg.Secrets
		c.Pools[0].Provider, c.Pools[0].Warm = p, map[string]int{"base": 2}
	})
	other.full(p, 2)
	ids := make([]string, 20)
	together(20, func(i int) {
		ids[i] = []*bench{b, other}[i%2].create(request()).BoxID
	})
	slices.Sort(ids)
	require.Len(t, slices.Compact(ids), 20)
	for _, id := range ids {
		require.Equal(t, id, p.box(id).SandboxID)
	}
}

func TestClaimThatFails(t *testing.T) {
	lost := adapters.Errorf(adapters.KindUnknownOutcome, "the connection broke")
	cases := []struct {
		name    string
		set     func(*stocking)
		creates int
	}{
		{"none fits any more", func(p *stocking) { p.onClaim = fails(adapters.Errorf(adapters.KindNotFound, "none")) }, 1},
		{"the provider is away for a moment", func(p *stocking) { p.onClaim = fails(adapters.Errorf(adapters.KindUnavailable, "away")) }, 1},
		{"a bug of the adapter", func(p *stocking) { p.onClaim = fails(errors.New("untyped")) }, 1},
		{"the request was lost", func(p *stocking) { p.onClaim = fails(lost) }, 1},
		{"the answer was lost", func(p *stocking) { p.afterClaim = fails(lost) }, 0},
		{"it hangs", func(p *stocking) {
			p.onClaim = func(ctx context.Context, _ adapters.Spec) error { <-ctx.Done(); return ctx.Err() }
		}, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b, p := startStocked(t, nil)
			b.full(p, 2)
			p.with(func(*fake) { c.set(p) })
			sb := b.create(request())
			require.Equal(t, c.creates, p.creates)
			box := p.box(sb.BoxID)
			require.Equal(t, sb.Attempt, box.Attempt, "the id and the attempt are those of the intent")
			require.Equal(t, sb.ID, box.SandboxID)
			b.full(p, 2)
			require.Equal(t, 3, p.count())
		})
	}
}

func fails(err error) func(context.Context, adapters.Spec) error {
	return func(context.Context, adapters.Spec) error { return err }
}

func TestClaimThatStaysUnknown(t *testing.T) {
	b, p := startStocked(t, nil)
	b.full(p, 2)
	p.with(func(f *fake) {
		f.getErr = adapters.Errorf(adapters.KindUnavailable, "away")
		p.afterClaim = fails(context.DeadlineExceeded)
	})
	_, err := b.fleet.Create(t.Context(), request())
	requireKind(t, adapters.KindUnknownOutcome, err)
	require.Zero(t, p.creates, "nothing is made beside what may be there")
	all, err := b.fleet.All(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1, "the intent stays")
	p.with(func(f *fake) { f.getErr, p.afterClaim = nil, nil })
	b.fleet.Reconcile(t.Context())
	b.gone(all[0].ID)
	b.full(p, 2)
}

func TestStockGivesWay(t *testing.T) {
	b, p := startStocked(t, func(_ *Config, p *stocking) { p.most = 4 })
	b.full(p, 2)
	no := false
	req := request()
	req.Network.AllowInternetAccess = &no // so that each is made
	for range 4 {
		b.create(req)
	}
	require.Zero(t, p.inStock())
	_, err := b.fleet.Create(t.Context(), req)
	requireKind(t, adapters.KindCapacity, err)
}

func TestStockIsNoTeams(t *testing.T) {
	b, p := startStocked(t, func(c *Config, _ *stocking) { c.TeamConcurrency = 2 })
	b.full(p, 2)
	b.create(request())
	b.create(request())
	_, err := b.fleet.Create(t.Context(), request())
	requireKind(t, adapters.KindTeamLimit, err)
	all, err := b.fleet.All(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 2, "what is in stock is nobody's sandbox")
}

func TestCreatesComeBeforeStock(t *testing.T) {
	b, p := startStocked(t, func(_ *Config, p *stocking) {
		p.stockErr = adapters.Errorf(adapters.KindUnavailable, "not yet")
	})
	reached, release := make(chan struct{}), make(chan struct{})
	p.with(func(f *fake) {
		f.before = func(context.Context, adapters.Spec) error {
			close(reached)
			<-release
			return nil
		}
	})
	made := make(chan error, 1)
	go func() {
		_, err := b.fleet.Create(context.Background(), request())
		made <- err
	}()
	<-reached
	p.with(func(*fake) { p.stockErr = nil })
	before := stocksOf(p)
	pool := b.fleet.pools.all()[0]
	missing, err := b.fleet.fillOne(t.Context(), pool)
	require.NoError(t, err)
	require.False(t, missing)
	require.Equal(t, before, stocksOf(p), "nothing is put into stock meanwhile")
	close(release)
	require.NoError(t, <-made)
	b.full(p, 2)
}

func stocksOf(p *stocking) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stocks
}

func TestStockAfterAKilledFacade(t *testing.T) {
	cases := []struct {
		name   string
		change func(b *bench, p *stocking)
		stays  bool
	}{
		{"as before", func(*bench, *stocking) {}, true},
		{"old", func(_ *bench, p *stocking) { p.age(time.Hour, time.Now().Add(time.Second)) }, true},
		{"the template changed", func(_ *bench, p *stocking) { p.version = "2" }, false},
		{"they ended", func(_ *bench, p *stocking) {
			for id := range maps.Clone(p.boxes) {
				p.die(id)
			}
		}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b, p := startStocked(t, nil)
			b.full(p, 2)
			left := b.crash(p)
			c.change(b, p)
			b.up()
			b.full(p, 2)
			require.Equal(t, 2, p.count())
			for id, box := range left {
				require.Equal(t, c.stays, p.box(id) != nil)
				if c.stays {
					require.Greater(t, time.Until(p.box(id).deadline), stockLife/2, "its end was moved")
					require.Equal(t, box.Attempt, p.box(id).Attempt)
				}
			}
			sb := b.create(request())
			require.Equal(t, p.version, p.box(sb.BoxID).spec.Template.Version)
			require.Zero(t, p.creates)
		})
	}
}

// crash leaves what a killed facade leaves: the fleet ends, but the provider holds what it held before.
func (b *bench) crash(p *stocking) map[string]*fakeBox {
	b.t.Helper()
	p.mu.Lock()
	left := maps.Clone(p.boxes)
	for id, box := range left {
		copied := *box
		copied.ended = make(chan struct{})
		left[id] = &copied
	}
	p.boxes = map[string]*fakeBox{}
	p.mu.Unlock()
	b.stop()
	p.with(func(f *fake) { f.boxes = maps.Clone(left) })
	return left
}

// A facade may die before, during and after the claim: the record says creating, and the box is in stock, is
// claimed, or both.
func TestKilledAroundAClaim(t *testing.T) {
	for _, key := range []string{"", "key"} {
		for _, claimed := range []bool{false, true} {
			t.Run("key="+key+map[bool]string{true: ", claimed"}[claimed], func(t *testing.T) {
				b, p := startStocked(t, nil)
				b.full(p, 2)
				req := request()
				req.IdempotencyKey = key
				intent := b.intend(req)
				if claimed {
					spec := b.fleet.spec(intent, req, b.first(req))
					_, err := p.Claim(t.Context(), spec)
					require.NoError(t, err)
				}
				b.crash(p)
				b.up()
				if key == "" || !claimed {
					b.gone(intent.ID)
				}
				b.full(p, 2)
				sb := b.create(req)
				require.Equal(t, key != "" && claimed, sb.ID == intent.ID, "the repeat gets what was claimed for it")
				b.full(p, 2)
				require.Equal(t, 3, p.count(), "nothing is lost and nothing is used twice")
				require.Zero(t, p.creates)
			})
		}
	}
}

// first is where a create is tried first.
func (b *bench) first(req placement.Request) candidate {
	b.t.Helper()
	planned, err := b.fleet.plan(b.t.Context(), req)
	require.NoError(b.t, err)
	return planned.order[0]
}

// intend writes an intent as a create does.
func (b *bench) intend(req placement.Request) store.Sandbox {
	b.t.Helper()
	intent := b.fleet.intent(newID(), req, b.first(req))
	_, err := b.store.Sandboxes.Begin(b.t.Context(), store.Intent{Sandbox: intent, Key: req.IdempotencyKey, Fingerprint: req.Fingerprint})
	require.NoError(b.t, err)
	return intent
}

func TestStopLeavesNoStock(t *testing.T) {
	for _, all := range []bool{false, true} {
		b, p := startStocked(t, func(c *Config, _ *stocking) { c.KillOnExit = all })
		b.full(p, 2)
		b.create(request())
		b.stop()
		require.Zero(t, p.inStock())
		require.Equal(t, map[bool]int{false: 1, true: 0}[all], p.count())
	}
}

func TestStockThatIsConfiguredNoMore(t *testing.T) {
	b, p := startStocked(t, nil)
	b.full(p, 2)
	sb := b.create(request())
	b.crash(p)
	adjust := b.adjust
	b.adjust = func(c *Config) {
		adjust(c)
		c.Pools[0].Warm = nil
	}
	b.up()
	require.Eventually(t, func() bool { return p.inStock() == 0 }, 30*time.Second, time.Millisecond)
	require.NotNil(t, p.box(sb.BoxID))
}

func TestAProviderThatDoesNotStockAfterAll(t *testing.T) {
	b, p := startStocked(t, func(_ *Config, p *stocking) {
		p.stockErr = adapters.Errorf(adapters.KindUnsupported, "not here")
	})
	require.Eventually(t, func() bool { return len(b.fleet.pools.all()[0].stock.kept()) == 0 }, 30*time.Second, time.Millisecond)
	b.create(request())
	require.Equal(t, 1, p.creates)
	require.Equal(t, 1, stocksOf(p))
}

func TestReloadChangesWhatIsMadeAhead(t *testing.T) {
	b, p := startStocked(t, nil)
	b.full(p, 2)
	for _, boxes := range []int{3, 1, 0, 2} {
		pool := Pool{Name: "one", Provider: p, Warm: map[string]int{"base": boxes}}
		require.NoError(t, b.fleet.Reload(t.Context(), []Pool{pool}, placement.Settings{}))
		b.full(p, boxes)
	}
}
