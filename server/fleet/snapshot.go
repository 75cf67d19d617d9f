package fleet

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
)

// Snapshot copies a running sandbox of the team, which runs on. name is name:tag, which it then has, and which a former
// one loses; empty: none. memory true asks for a copy with the memory. Once begun it is brought to an end, also when ctx
// ends before.
func (f *Fleet) Snapshot(ctx context.Context, teamID, id, name string, memory *bool) (store.Snapshot, error) {
	sb, err := f.owned(ctx, teamID, id)
	if err != nil {
		return store.Snapshot{}, err
	}
	p, err := f.poolOf(sb.Pool)
	if err != nil {
		return store.Snapshot{}, err
	}
	if err := p.copies(memory); err != nil {
		return store.Snapshot{}, err
	}
	if err := f.nameIsFree(ctx, name); err != nil {
		return store.Snapshot{}, err
	}
	intent := store.Snapshot{
		ID: newID()[1:], TeamID: teamID, SandboxID: id, State: store.SnapshotCreating, Pool: p.name, CopyName: newID(), Name: name,
		CreatedAt: time.Now().UTC(), CPU: sb.CPU, MemoryMB: sb.MemoryMB, DiskMB: sb.DiskMB, Sealed: sb.Sealed,
	}
	_, err = f.alone(ctx, id, func(ctx context.Context) (store.Sandbox, error) {
		taken, err := f.takeSnapshot(ctx, p, intent)
		if err == nil {
			intent = taken
		}
		return store.Sandbox{}, err
	})
	if err != nil {
		return store.Snapshot{}, err
	}
	return intent, nil
}

// copies says whether the pool can make such a copy.
func (p *pool) copies(memory *bool) error {
	has := p.terms.Load().facts.Capabilities.Value(adapters.FeatureSnapshot)
	switch {
	case p.snapshotter == nil:
		return unsupported("createSnapshot is not supported here: pool %s cannot copy sandboxes. "+
			"Save the files elsewhere, or create the sandbox with the requirement snapshot=filesystem", p.name)
	case memory != nil && !*memory && has == string(adapters.LevelMemory):
		return unsupported("memory: false is not supported here: pool %s copies sandboxes with their memory. Leave the field out", p.name)
	case memory != nil && *memory && has != string(adapters.LevelMemory):
		return unsupported("memory: true is not supported here: pool %s copies the files of a sandbox and not its memory. Leave the field out", p.name)
	}
	return nil
}

// nameIsFree refuses the name of a template, which a snapshot would hide.
func (f *Fleet) nameIsFree(ctx context.Context, name string) error {
	alias, _, _ := strings.Cut(name, ":")
	if alias == "" {
		return nil
	}
	_, err := f.Template(ctx, alias)
	switch {
	case err == nil:
		return adapters.Errorf(adapters.KindInvalid, "there is a template %s: give the snapshot another name", alias)
	case adapters.KindOf(err) == adapters.KindNotFound:
		return nil
	}
	return err
}

// takeSnapshot writes the intent, claims the sandbox and copies it.
func (f *Fleet) takeSnapshot(ctx context.Context, p *pool, intent store.Snapshot) (store.Snapshot, error) {
	if err := f.store.Snapshots.Add(ctx, intent); err != nil {
		return store.Snapshot{}, storeError("", err)
	}
	sb, err := f.store.Sandboxes.Change(ctx, intent.SandboxID, func(record *store.Sandbox) error {
		if record.State == store.StatePaused {
			return asleep(*record)
		}
		if err := whenAwake(*record); err != nil {
			return err
		}
		record.State = store.StateSnapshotting
		return nil
	})
	if err != nil {
		f.dropSnapshot(ctx, intent.ID)
		return store.Snapshot{}, storeError(intent.SandboxID, err)
	}
	taken, err := f.copyBox(ctx, p, sb, intent)
	if _, ended := f.snapshotEnds(ctx, sb); err == nil && ended != nil {
		f.log.Warn("snapshot: its sandbox does not run on", "sandbox", sb.ID, "err", ended)
	}
	return taken, err
}

// copyBox asks the place for the copy and notes what became of it. After an outcome that is not known the copy is looked
// up by its name; one that comes up only later is removed by Reconcile.
func (f *Fleet) copyBox(ctx context.Context, p *pool, sb store.Sandbox, intent store.Snapshot) (store.Snapshot, error) {
	spec, err := f.specAgain(sb, sb.EndAt)
	if err != nil {
		f.dropSnapshot(ctx, intent.ID)
		return store.Snapshot{}, err
	}
	made, err := p.snapshot(ctx, spec, intent.CopyName)
	if err == nil && !whole(made) || err != nil && !leavesNothing(err) {
		made, err = f.findCopy(ctx, p, intent.CopyName, err)
	}
	if err != nil {
		f.abandonSnapshot(ctx, intent.ID, leavesNothing(err))
		return store.Snapshot{}, err
	}
	ready, err := f.store.Snapshots.Change(ctx, intent.ID, func(record *store.Snapshot) error {
		record.State, record.Ref, record.Level, record.SizeBytes = store.SnapshotReady, made.Ref, string(made.Level), made.SizeBytes
		return nil
	})
	if err != nil {
		return store.Snapshot{}, storeError("", err)
	}
	f.note(ctx, sb, "sandbox copied", map[string]string{"snapshot": ready.ID})
	return ready, nil
}

// whole reports whether boxes can be made of a copy.
func whole(made adapters.Snapshot) bool { return made.Ready && made.Ref != "" }

// findCopy looks for a copy by its name, after an outcome that is not known. One that is not whole is not the answer to
// anybody: KindUnknownOutcome.
func (f *Fleet) findCopy(ctx context.Context, p *pool, name string, cause error) (adapters.Snapshot, error) {
	f.log.Warn("snapshot: looking up what became of a copy", "pool", p.name, "copy", name, "err", cause)
	list, err := p.snapshots(ctx, f.cfg.Secrets.Deployment())
	for _, one := range list {
		if err == nil && one.Name == name && whole(one) {
			return one, nil
		}
	}
	return adapters.Snapshot{}, adapters.Wrap(adapters.KindUnknownOutcome, errors.Join(cause, err),
		"pool "+p.name+" does not say whether the snapshot was made. What comes up of it is removed: take another")
}

// abandonSnapshot gives an intent up: at once where nothing was made, else Reconcile removes what may come up.
func (f *Fleet) abandonSnapshot(ctx context.Context, id string, nothing bool) {
	if nothing {
		f.dropSnapshot(ctx, id)
		return
	}
	_, err := f.store.Snapshots.Change(ctx, id, func(record *store.Snapshot) error {
		record.State = store.SnapshotRemoving
		return nil
	})
	if err != nil {
		f.log.Error("snapshot: an intent could not be given up: it is tried again", "snapshot", id, "err", err)
	}
}

func (f *Fleet) dropSnapshot(ctx context.Context, id string) {
	if err := f.store.Snapshots.Delete(ctx, id); err != nil {
		f.log.Error("snapshot: a record could not be removed: it is tried again", "snapshot", id, "err", err)
	}
}

// snapshotEnds lets the sandbox run on after a snapshot, whatever became of the copy.
func (f *Fleet) snapshotEnds(ctx context.Context, sb store.Sandbox) (store.Sandbox, error) {
	changed, err := f.store.Sandboxes.Change(ctx, sb.ID, func(record *store.Sandbox) error {
		if record.State == store.StateSnapshotting {
			record.State = store.StateRunning
		}
		return nil
	})
	if err != nil {
		return store.Sandbox{}, storeError(sb.ID, err)
	}
	f.keep(ctx, changed)
	f.wakeReaper()
	return changed, nil
}

// Snapshots returns one page of the team's snapshots, the newest first.
func (f *Fleet) Snapshots(ctx context.Context, q store.SnapshotQuery) (store.SnapshotPage, error) {
	page, err := f.store.Snapshots.List(ctx, q)
	return page, storeError("", err)
}

// RemoveSnapshot removes a snapshot of the team by id or name. KindNotFound when there is none; templates are their
// operator's to remove.
func (f *Fleet) RemoveSnapshot(ctx context.Context, teamID, reference string) error {
	snapshot, err := f.store.Snapshots.Find(ctx, teamID, reference)
	if errors.Is(err, store.ErrNotFound) {
		if template, err := f.Template(ctx, reference); err == nil {
			return adapters.Errorf(adapters.KindUnsupported, "template %s is this Isthmus's own: its operator removes it, with `isthmus images`", template.Name)
		}
		return adapters.Errorf(adapters.KindNotFound, "there is no snapshot %s", reference)
	}
	if err != nil {
		return storeError("", err)
	}
	p, err := f.poolOf(snapshot.Pool)
	if err != nil {
		return err
	}
	if p.snapshotter == nil {
		return unsupported("pool %s does not know snapshots any more", p.name)
	}
	snapshot, err = f.store.Snapshots.Change(ctx, snapshot.ID, func(record *store.Snapshot) error {
		record.State = store.SnapshotRemoving
		return nil
	})
	if err != nil {
		return storeError("", err)
	}
	return f.forget(ctx, p, snapshot, snapshot.Ref)
}

// forget removes the copy of a record that is being removed, and then the record. One that is in use is ready again, if
// it ever was: a record without a Ref was given up before, and its removal is tried again.
func (f *Fleet) forget(ctx context.Context, p *pool, snapshot store.Snapshot, ref string) error {
	err := p.forget(ctx, adapters.Snapshot{
		Name: snapshot.CopyName, Ref: ref, Deployment: f.cfg.Secrets.Deployment(), Level: adapters.Level(snapshot.Level), CreatedAt: snapshot.CreatedAt,
	})
	switch kind := adapters.KindOf(err); {
	case err == nil || kind == adapters.KindNotFound:
		return storeError("", f.store.Snapshots.Delete(ctx, snapshot.ID))
	case kind == adapters.KindPrecondition && snapshot.Ref != "":
		_, changed := f.store.Snapshots.Change(ctx, snapshot.ID, func(record *store.Snapshot) error {
			record.State = store.SnapshotReady
			return nil
		})
		return errors.Join(adapters.Wrap(adapters.KindInvalid, err, "sandboxes that were made of the snapshot need it: kill them first"), changed)
	}
	return err
}

// templateOf is what sandboxes are made of.
func (f *Fleet) templateOf(snapshot store.Snapshot) (adapters.Template, error) {
	t, err := f.unsealed(snapshot.TeamID, snapshot.Sealed)
	if err != nil {
		return adapters.Template{}, err
	}
	alias, _, _ := strings.Cut(snapshot.Name, ":")
	return adapters.Template{
		ID: snapshot.ID, Name: cmp.Or(alias, snapshot.ID), Version: snapshot.Ref, EnvVars: t.EnvVars, Snapshot: snapshot.Ref,
		Resources: adapters.Resources{CPU: snapshot.CPU, MemoryMB: snapshot.MemoryMB, DiskMB: snapshot.DiskMB},
	}, nil
}
