package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
)

func TestRestartKeepsSandboxes(t *testing.T) {
	b := start(t, nil)
	sb := b.create(request())
	before, err := b.fleet.Route(t.Context(), sb.ID)
	require.NoError(t, err)
	b.restart()
	after, err := b.fleet.Route(t.Context(), sb.ID)
	require.NoError(t, err)
	require.Equal(t, before.Transport, after.Transport)
	require.Equal(t, before.EnvdToken, after.EnvdToken)
	again, err := b.fleet.Sandbox(t.Context(), "team", sb.ID)
	require.NoError(t, err)
	require.Equal(t, sb, again)
	_, ok := b.fleet.Match(t.Context(), func(id, _ string) bool { return id == sb.ID })
	require.True(t, ok, "signed URLs work at once")
}

func TestDeadlineThatPassedWhileAway(t *testing.T) {
	b := start(t, nil)
	req := request()
	req.Timeout = 200 * time.Millisecond
	sb := b.create(req)
	b.stop()
	time.Sleep(time.Until(sb.EndAt))
	b.up()
	b.gone(sb.ID)
}

func TestRepairs(t *testing.T) {
	cases := []struct {
		name   string
		damage func(b *bench, sb store.Sandbox)
		stays  bool
	}{
		{"killed while killing", func(b *bench, sb store.Sandbox) { b.cut(sb.ID, store.StateKilling) }, false},
		{"killed while creating, box made", func(b *bench, sb store.Sandbox) { b.cut(sb.ID, store.StateCreating) }, false},
		{"killed while creating, no box", func(b *bench, sb store.Sandbox) {
			b.cut(sb.ID, store.StateCreating)
			_ = b.provider.Destroy(b.t.Context(), sb.BoxID)
		}, false},
		{"box vanished", func(b *bench, sb store.Sandbox) { b.provider.with(func(p *fake) { delete(p.boxes, sb.BoxID) }) }, false},
		{"box died", func(b *bench, sb store.Sandbox) { b.provider.with(func(p *fake) { p.boxes[sb.BoxID].Alive = false }) }, false},
		{"record lost, box old", func(b *bench, sb store.Sandbox) {
			_ = b.store.Sandboxes.Delete(b.t.Context(), sb.ID)
			b.provider.with(func(p *fake) { p.boxes[sb.BoxID].CreatedAt = time.Now().Add(-2 * time.Minute) })
		}, false},
		{"another deployment's box", func(b *bench, sb store.Sandbox) {
			_ = b.store.Sandboxes.Delete(b.t.Context(), sb.ID)
			b.provider.with(func(p *fake) {
				p.boxes[sb.BoxID].CreatedAt = time.Now().Add(-2 * time.Minute)
				p.boxes[sb.BoxID].Deployment = "another"
			})
		}, true},
		{"record lost, box young", func(b *bench, sb store.Sandbox) { _ = b.store.Sandboxes.Delete(b.t.Context(), sb.ID) }, true},
		{"provider away", func(b *bench, _ store.Sandbox) {
			b.provider.with(func(p *fake) { p.listErr = adapters.Errorf(adapters.KindUnavailable, "away") })
		}, true},
		{"list behind the times", func(b *bench, sb store.Sandbox) {
			b.provider.with(func(p *fake) { p.boxes[sb.BoxID].Deployment = "hidden" })
		}, true},
		{"nothing", func(*bench, store.Sandbox) {}, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := start(t, nil)
			sb := b.create(request())
			// Broken behind the back of a fleet that is down, as a killed process leaves it.
			b.cancel()
			require.NoError(t, <-b.ended)
			b.cancel = nil
			c.damage(b, sb)
			require.NoError(t, b.store.Engine().Close())
			b.up()
			if !c.stays {
				b.gone(sb.ID)
				return
			}
			b.fleet.Reconcile(t.Context())
			require.NotNil(t, b.provider.box(sb.ID))
		})
	}
}

func TestBackstopIsMovedAgainAfterRestart(t *testing.T) {
	b := start(t, nil)
	sb := b.create(request())
	require.NoError(t, b.fleet.SetTimeout(t.Context(), "team", sb.ID, time.Hour))
	b.stop()
	b.provider.boxes[sb.BoxID].deadline = time.Now()
	b.up()
	require.Eventually(t, func() bool { return time.Until(b.provider.box(sb.ID).deadline) > time.Hour }, 30*time.Second, 5*time.Millisecond)
}

func TestPoolThatIsConfiguredNoMore(t *testing.T) {
	b := start(t, nil)
	sb := b.create(request())
	b.adjust = func(c *Config) { c.Pools[0].Name = "renamed" }
	b.restart()
	_, err := b.fleet.Route(t.Context(), sb.ID)
	requireKind(t, adapters.KindUnavailable, err)
}

func TestSecretsFile(t *testing.T) {
	path := t.TempDir() + "/key"
	one, err := LoadSecrets(path)
	require.NoError(t, err)
	two, err := LoadSecrets(path)
	require.NoError(t, err)
	require.Equal(t, one, two)
	distinct := map[string]bool{one.Transport("i"): true, one.Control("i"): true, one.EnvdToken("i"): true, one.TrafficToken("i"): true, one.Transport("j"): true}
	require.Len(t, distinct, 5)
}
