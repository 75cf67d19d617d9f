package fleet

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/translate/placement"
)

func TestCreate(t *testing.T) {
	b := start(t, nil)
	sb := b.create(request())
	require.Regexp(t, regexp.MustCompile(`^i[a-z0-9]{20}$`), sb.ID)
	require.Equal(t, store.StateRunning, sb.State)
	require.Equal(t, time.Minute, sb.EndAt.Sub(sb.StartedAt))
	require.Equal(t, 2, sb.CPU)
	require.Equal(t, envd.Version, sb.EnvdVersion)

	box := b.provider.box(sb.ID)
	token, traffic := b.fleet.Tokens(sb)
	require.Len(t, token, 64)
	require.Empty(t, traffic)
	require.Equal(t, token, box.spec.Envd.AccessToken)
	require.Equal(t, map[string]string{"A": "template", "B": "request"}, box.spec.Envd.EnvVars)
	require.True(t, box.deadline.After(sb.EndAt.Add(backstopSlack-time.Second)))
	require.True(t, box.spec.Network.Internet)

	route, err := b.fleet.Route(t.Context(), sb.ID)
	require.NoError(t, err)
	require.Equal(t, box.spec.Envd.Transport, route.Transport)
	require.Equal(t, box.spec.Envd.Control, route.Control)
	require.NotEqual(t, route.Transport, route.Control)
}

func TestCreateRefusals(t *testing.T) {
	no := false
	cases := []struct {
		name   string
		change func(*placement.Request, *fake)
		kind   adapters.Kind
	}{
		{"unknown template", func(r *placement.Request, _ *fake) { r.Template = "nope" }, adapters.KindNotFound},
		{"no time", func(r *placement.Request, _ *fake) { r.Timeout = 0 }, adapters.KindInvalid},
		{"too long", func(r *placement.Request, _ *fake) { r.Timeout = 25 * time.Hour }, adapters.KindInvalid},
		{"huge metadata", func(r *placement.Request, _ *fake) {
			r.Metadata = map[string]string{"k": strings.Repeat("x", 257<<10)}
		}, adapters.KindInvalid},
		{"no way to take the internet away", func(r *placement.Request, p *fake) {
			p.noOff = true
			r.Network.AllowInternetAccess = &no
		}, adapters.KindUnsupported},
		{"full", func(_ *placement.Request, p *fake) {
			p.before = func(context.Context, adapters.Spec) error { return adapters.Errorf(adapters.KindCapacity, "full") }
		}, adapters.KindCapacity},
		{"a bug of the adapter", func(_ *placement.Request, p *fake) {
			p.before = func(context.Context, adapters.Spec) error { return errors.New("untyped") }
		}, adapters.KindInternal},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			req := request()
			provider := newFake()
			t.Cleanup(provider.health.Close)
			c.change(&req, provider)
			b := start(t, func(cfg *Config) { cfg.Pools[0].Provider = provider })
			_, err := b.fleet.Create(t.Context(), req)
			requireKind(t, c.kind, err)
			all, err := b.fleet.All(t.Context())
			require.NoError(t, err)
			require.Empty(t, all, "the intent is removed")
			require.Zero(t, provider.count())
		})
	}
}

func TestTeamLimitHoldsUnderRace(t *testing.T) {
	b := start(t, func(c *Config) { c.TeamConcurrency = 5 })
	var mu sync.Mutex
	kinds := map[adapters.Kind]int{}
	together(20, func(int) {
		_, err := b.fleet.Create(t.Context(), request())
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			kinds["ok"]++
			return
		}
		kinds[adapters.KindOf(err)]++
	})
	require.Equal(t, map[adapters.Kind]int{"ok": 5, adapters.KindTeamLimit: 15}, kinds)
	other := request()
	other.TeamID = "other"
	b.create(other)
}

func TestLostAnswerIsAdopted(t *testing.T) {
	b := start(t, nil)
	b.provider.after = func(context.Context, adapters.Spec) error {
		return adapters.Errorf(adapters.KindUnknownOutcome, "the connection broke")
	}
	sb := b.create(request())
	require.Equal(t, 1, b.provider.count())
	require.Equal(t, 1, b.provider.creates, "a create is never repeated blindly")
	require.NoError(t, b.fleet.Kill(t.Context(), "team", sb.ID))
	require.Zero(t, b.provider.count())
}

func TestUnknownOutcomeThatMadeNothing(t *testing.T) {
	b := start(t, nil)
	b.provider.before = func(context.Context, adapters.Spec) error {
		return adapters.Errorf(adapters.KindUnknownOutcome, "the connection broke")
	}
	_, err := b.fleet.Create(t.Context(), request())
	requireKind(t, adapters.KindUnknownOutcome, err)
	all, _ := b.fleet.All(t.Context())
	require.Empty(t, all)
}

func TestUndecidedIsKeptForReconcile(t *testing.T) {
	away := adapters.Errorf(adapters.KindUnavailable, "away")
	for _, key := range []string{"", "key"} {
		t.Run("key="+key, func(t *testing.T) {
			b := start(t, nil)
			b.provider.with(func(p *fake) {
				p.getErr = away
				p.after = func(context.Context, adapters.Spec) error { return context.DeadlineExceeded }
			})
			req := request()
			req.IdempotencyKey = key
			_, err := b.fleet.Create(t.Context(), req)
			requireKind(t, adapters.KindUnknownOutcome, err)
			all, _ := b.fleet.All(t.Context())
			require.Len(t, all, 1, "the intent stays")
			require.Equal(t, store.StateCreating, all[0].State)
			page, _ := b.fleet.List(t.Context(), store.SandboxQuery{TeamID: "team"})
			require.Empty(t, page.Sandboxes, "and is not shown")

			b.provider.with(func(p *fake) { p.getErr, p.after = nil, nil })
			b.fleet.Reconcile(t.Context())
			if key == "" {
				b.gone(all[0].ID)
				return
			}
			sb := b.create(req)
			require.Equal(t, all[0].ID, sb.ID, "the repeat gets what the first made")
			require.Equal(t, 1, b.provider.creates)
		})
	}
}

func TestCallerThatLeaves(t *testing.T) {
	for _, key := range []string{"", "key"} {
		t.Run("key="+key, func(t *testing.T) {
			b := start(t, nil)
			reached, release := make(chan struct{}), make(chan struct{})
			b.provider.before = func(context.Context, adapters.Spec) error {
				close(reached)
				<-release
				return nil
			}
			ctx, cancel := context.WithCancel(t.Context())
			req := request()
			req.IdempotencyKey = key
			answer := make(chan error, 1)
			go func() {
				_, err := b.fleet.Create(ctx, req)
				answer <- err
			}()
			<-reached
			cancel()
			require.Error(t, <-answer)
			close(release)
			b.provider.with(func(p *fake) { p.before = nil })
			if key == "" {
				require.Eventually(t, func() bool {
					all, _ := b.fleet.All(context.Background())
					return len(all) == 0 && b.provider.count() == 0 && b.provider.destroys > 0
				}, 30*time.Second, 5*time.Millisecond)
				return
			}
			sb := b.create(req)
			require.Equal(t, 1, b.provider.count())
			require.NotNil(t, b.provider.box(sb.ID))
		})
	}
}

func TestIdempotencyKey(t *testing.T) {
	b := start(t, nil)
	req := request()
	req.IdempotencyKey, req.Fingerprint = "key", "print"
	ids := make([]string, 50)
	together(len(ids), func(i int) {
		sb, err := b.fleet.Create(t.Context(), req)
		require.NoError(t, err)
		ids[i] = sb.ID
	})
	for _, id := range ids {
		require.Equal(t, ids[0], id)
	}
	require.Equal(t, 1, b.provider.creates)

	b.restart()
	require.Equal(t, ids[0], b.create(req).ID)

	other := req
	other.Fingerprint = "another"
	_, err := b.fleet.Create(t.Context(), other)
	requireKind(t, adapters.KindPrecondition, err)
	other = req
	other.TeamID = "other"
	require.NotEqual(t, ids[0], b.create(other).ID, "keys are the team's own")

	require.NoError(t, b.fleet.Kill(t.Context(), "team", ids[0]))
	_, err = b.fleet.Create(t.Context(), req)
	requireKind(t, adapters.KindPrecondition, err)
}

func TestIdempotencyKeyIsFreeAfterFailure(t *testing.T) {
	b := start(t, nil)
	b.provider.before = func(context.Context, adapters.Spec) error { return adapters.Errorf(adapters.KindCapacity, "full") }
	req := request()
	req.IdempotencyKey = "key"
	_, err := b.fleet.Create(t.Context(), req)
	requireKind(t, adapters.KindCapacity, err)
	b.provider.with(func(p *fake) { p.before = nil })
	b.create(req)
}

func TestSecondPoolServesWhenTheFirstIsFull(t *testing.T) {
	full := newFake()
	t.Cleanup(full.health.Close)
	full.before = func(context.Context, adapters.Spec) error { return adapters.Errorf(adapters.KindCapacity, "full") }
	b := start(t, func(c *Config) { c.Pools = append([]Pool{{Name: "full", Provider: full}}, c.Pools...) })
	sb := b.create(request())
	require.Equal(t, "one", sb.Pool)
	_, err := b.fleet.Route(t.Context(), sb.ID)
	require.NoError(t, err)
}

func TestNewIDs(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := newID()
		require.Regexp(t, `^i[a-z0-9]{20}$`, id)
		require.False(t, seen[id])
		seen[id] = true
	}
}

func TestCallerThatLeavesTheQueue(t *testing.T) {
	b := start(t, func(c *Config) { c.Pools[0].CreatesAtOnce = 1 })
	reached, release := make(chan struct{}), make(chan struct{})
	b.provider.before = func(context.Context, adapters.Spec) error {
		close(reached)
		<-release
		return nil
	}
	first := make(chan error, 1)
	go func() {
		_, err := b.fleet.Create(context.Background(), request())
		first <- err
	}()
	<-reached
	ctx, cancel := context.WithCancel(t.Context())
	second := make(chan error, 1)
	go func() {
		_, err := b.fleet.Create(ctx, request())
		second <- err
	}()
	require.Eventually(t, func() bool { return b.fleet.Counts().CreatesInFlight == 2 }, 30*time.Second, time.Millisecond)
	cancel()
	requireKind(t, adapters.KindUnavailable, <-second)
	require.Eventually(t, func() bool { return b.fleet.Counts().CreatesInFlight == 1 }, 30*time.Second, time.Millisecond)
	close(release)
	require.NoError(t, <-first)
	require.Equal(t, 1, b.provider.creates, "nothing is made for nobody")
}
