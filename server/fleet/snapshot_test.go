package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
)

func TestSnapshotAndCreateFromIt(t *testing.T) {
	b := able(t, adapters.LevelMemory, func(c *Config) {
		c.Pools = append([]Pool{{Name: "zero", Provider: newFake(), Templates: map[string]string{"base": "none"}}}, c.Pools...)
	})
	ctx, f := t.Context(), b.fleet
	sb := b.create(request())
	require.Equal(t, "one", sb.Pool)
	plain, err := f.Snapshot(ctx, "team", sb.ID, "", nil)
	require.NoError(t, err)
	named, err := f.Snapshot(ctx, "team", sb.ID, "mine:default", ptr(false))
	require.NoError(t, err)
	require.Equal(t, store.StateRunning, b.state(sb.ID))
	_, err = f.Route(ctx, sb.ID)
	require.NoError(t, err)
	_, err = f.Snapshot(ctx, "team", sb.ID, "base:default", nil)
	requireKind(t, adapters.KindInvalid, err)
	_, err = f.Snapshot(ctx, "team", sb.ID, "", ptr(true))
	requireKind(t, adapters.KindUnsupported, err)

	for _, reference := range []string{plain.ID, "mine", "mine:default", "base"} {
		require.NoError(t, f.KnowsTemplate(ctx, "team", reference))
	}
	requireKind(t, adapters.KindNotFound, f.KnowsTemplate(ctx, "other", plain.ID))
	requireKind(t, adapters.KindNotFound, f.KnowsTemplate(ctx, "team", "nowhere"))
	for _, reference := range []string{plain.ID, "mine", "mine:default"} {
		req := request()
		req.Template, req.EnvVars = reference, map[string]string{"C": "later"}
		made := b.create(req)
		require.Equal(t, "one", made.Pool, "it goes where the copy is")
		spec := b.provider.box(made.ID).spec
		require.Contains(t, []string{"ref-" + plain.CopyName, "ref-" + named.CopyName}, spec.Template.Snapshot)
		require.Equal(t, map[string]string{"A": "template", "B": "request", "C": "later"}, spec.Envd.EnvVars)
		require.NoError(t, f.Kill(ctx, "team", made.ID))
	}
	other := request()
	other.TeamID, other.Template = "other", plain.ID
	_, err = f.Create(ctx, other)
	requireKind(t, adapters.KindNotFound, err)

	page, err := f.Snapshots(ctx, store.SnapshotQuery{TeamID: "team", Limit: 1})
	require.NoError(t, err)
	require.Equal(t, named.ID, page.Snapshots[0].ID)
	page, err = f.Snapshots(ctx, store.SnapshotQuery{TeamID: "team", Limit: 1, After: page.Next})
	require.NoError(t, err)
	require.Equal(t, plain.ID, page.Snapshots[0].ID)
	require.Nil(t, page.Next)

	taken, err := f.Snapshot(ctx, "team", sb.ID, "mine:default", nil)
	require.NoError(t, err)
	require.NoError(t, f.RemoveSnapshot(ctx, "team", "mine"))
	requireKind(t, adapters.KindNotFound, f.RemoveSnapshot(ctx, "team", "mine"))
	require.NoError(t, f.RemoveSnapshot(ctx, "team", named.ID), "the one that lost its name is there by its id")
	require.NoError(t, f.RemoveSnapshot(ctx, "team", plain.ID))
	requireKind(t, adapters.KindUnsupported, f.RemoveSnapshot(ctx, "team", "base"))
	requireKind(t, adapters.KindNotFound, f.RemoveSnapshot(ctx, "team", taken.ID))
	require.Empty(t, b.provider.copies)
}

func TestASnapshotOfALostPool(t *testing.T) {
	b := able(t, adapters.LevelMemory, nil)
	sb := b.create(request())
	made, err := b.fleet.Snapshot(t.Context(), "team", sb.ID, "", nil)
	require.NoError(t, err)
	require.NoError(t, b.fleet.Kill(t.Context(), "team", sb.ID))
	b.stop()
	b.adjust = func(c *Config) { c.Pools[0].Name = "elsewhere" }
	b.up()
	req := request()
	req.Template = made.ID
	_, err = b.fleet.Create(t.Context(), req)
	requireKind(t, adapters.KindUnavailable, err)
	require.ErrorContains(t, err, "lies in pool one, which is not configured any more")
}

func TestWhatBecomesOfFailedSnapshots(t *testing.T) {
	unknown := adapters.Errorf(adapters.KindUnknownOutcome, "lost")
	t.Run("the answer is lost", func(t *testing.T) {
		b := able(t, adapters.LevelMemory, nil)
		sb := b.create(request())
		b.provider.with(func(p *fake) { p.answer = unknown })
		made, err := b.fleet.Snapshot(t.Context(), "team", sb.ID, "", nil)
		require.NoError(t, err, "it was looked up")
		require.Equal(t, "ref-"+made.CopyName, made.Ref)
	})
	for name, spoil := range map[string]func(*adapters.Snapshot){
		"the answer is lost and the copy unfinished": func(s *adapters.Snapshot) { s.Ready = false },
		"the answer is lost and the copy nowhere":    func(s *adapters.Snapshot) { s.Ref = "" },
	} {
		for _, answer := range []error{unknown, nil} {
			t.Run(fmt.Sprint(name, ", answer ", answer), func(t *testing.T) {
				b := able(t, adapters.LevelMemory, nil)
				sb := b.create(request())
				b.provider.with(func(p *fake) { p.answer, p.spoil = answer, spoil })
				_, err := b.fleet.Snapshot(t.Context(), "team", sb.ID, "mine:default", nil)
				requireKind(t, adapters.KindUnknownOutcome, err)
				require.Equal(t, store.StateRunning, b.state(sb.ID))
				require.Len(t, b.provider.copies, 1, "what may come up is not forgotten yet")
				records, err := b.store.Snapshots.All(t.Context())
				require.NoError(t, err)
				require.Len(t, records, 1)
				require.Equal(t, store.SnapshotRemoving, records[0].State)

				b.fleet.Reconcile(t.Context())
				records, err = b.store.Snapshots.All(t.Context())
				require.NoError(t, err)
				require.Empty(t, records)
				require.Empty(t, b.provider.copies)
			})
		}
	}
	t.Run("one that was given up stays so when its removal is refused", func(t *testing.T) {
		b := able(t, adapters.LevelMemory, nil)
		sb := b.create(request())
		b.provider.with(func(p *fake) { p.answer, p.spoil = unknown, func(s *adapters.Snapshot) { s.Ready = false } })
		_, err := b.fleet.Snapshot(t.Context(), "team", sb.ID, "mine:default", nil)
		requireKind(t, adapters.KindUnknownOutcome, err)
		b.provider.with(func(p *fake) { p.answer, p.spoil = nil, nil })
		newer, err := b.fleet.Snapshot(t.Context(), "team", sb.ID, "mine:default", nil)
		require.NoError(t, err)
		b.provider.with(func(p *fake) {
			p.onPower = func(string, string) error { return adapters.Errorf(adapters.KindPrecondition, "in use") }
		})
		b.fleet.Reconcile(t.Context())
		page, err := b.fleet.Snapshots(t.Context(), store.SnapshotQuery{TeamID: "team"})
		require.NoError(t, err)
		require.Equal(t, []store.Snapshot{newer}, page.Snapshots)
		b.provider.with(func(p *fake) { p.onPower = nil })
		b.fleet.Reconcile(t.Context())
		require.Len(t, b.provider.copies, 1, "its removal is tried again")
	})
	t.Run("nothing was made", func(t *testing.T) {
		b := able(t, adapters.LevelMemory, nil)
		sb := b.create(request())
		b.provider.with(func(p *fake) {
			p.onPower = func(string, string) error { return adapters.Errorf(adapters.KindQuota, "full") }
		})
		_, err := b.fleet.Snapshot(t.Context(), "team", sb.ID, "", nil)
		requireKind(t, adapters.KindQuota, err)
		require.Equal(t, store.StateRunning, b.state(sb.ID))
		records, err := b.store.Snapshots.All(t.Context())
		require.NoError(t, err)
		require.Empty(t, records)
	})
	t.Run("a crash in between", func(t *testing.T) {
		b := able(t, adapters.LevelMemory, nil)
		sb := b.create(request())
		made, err := b.fleet.Snapshot(t.Context(), "team", sb.ID, "mine:default", nil)
		require.NoError(t, err)
		_, err = b.store.Snapshots.Change(t.Context(), made.ID, func(s *store.Snapshot) error { s.State, s.Ref = store.SnapshotCreating, ""; return nil })
		require.NoError(t, err)
		b.cut(sb.ID, store.StateSnapshotting)
		b.restart()
		b.becomes(sb.ID, store.StateRunning)
		require.Eventually(t, func() bool {
			b.fleet.Reconcile(t.Context())
			records, err := b.store.Snapshots.All(t.Context())
			list, _ := b.provider.Snapshots(t.Context(), b.fleet.cfg.Secrets.Deployment())
			return err == nil && len(records) == 0 && len(list) == 0
		}, 30*time.Second, 10*time.Millisecond, "the copy and its record are removed")
	})
	t.Run("a copy that nobody knows", func(t *testing.T) {
		b := able(t, adapters.LevelMemory, func(c *Config) { c.Timing.Grace = time.Millisecond })
		mine, theirs := b.fleet.cfg.Secrets.Deployment(), "another"
		b.provider.with(func(p *fake) {
			p.copies = map[string]adapters.Snapshot{
				"a": {Name: "a", Ref: "a", Deployment: mine, CreatedAt: time.Now().Add(-time.Hour)},
				"b": {Name: "b", Ref: "b", Deployment: theirs, CreatedAt: time.Now().Add(-time.Hour)},
			}
		})
		b.fleet.Reconcile(t.Context())
		require.Len(t, b.provider.copies, 1)
		require.Contains(t, b.provider.copies, "b")
	})
	t.Run("a copy in use", func(t *testing.T) {
		b := able(t, adapters.LevelMemory, nil)
		sb := b.create(request())
		made, err := b.fleet.Snapshot(t.Context(), "team", sb.ID, "", nil)
		require.NoError(t, err)
		b.provider.with(func(p *fake) {
			p.onPower = func(string, string) error { return adapters.Errorf(adapters.KindPrecondition, "in use") }
		})
		requireKind(t, adapters.KindInvalid, b.fleet.RemoveSnapshot(t.Context(), "team", made.ID))
		b.provider.with(func(p *fake) { p.onPower = nil })
		require.NoError(t, b.fleet.RemoveSnapshot(t.Context(), "team", made.ID))
	})
}
