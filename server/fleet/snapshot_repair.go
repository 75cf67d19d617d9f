package fleet

import (
	"context"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
)

// repairSnapshots removes what snapshots left that came to nothing: copies of intents that nobody works on any more, and
// copies of ours that no record knows. A record whose copy does not show within the grace is gone too.
func (f *Fleet) repairSnapshots(ctx context.Context, p *pool) {
	if p.snapshotter == nil {
		return
	}
	records, err := f.store.Snapshots.All(ctx) // before the list: what is listed and not here was not begun before
	if err != nil {
		f.log.Error("reconcile: the snapshots' records cannot be read", "err", err)
		return
	}
	copies, err := p.snapshots(ctx, f.cfg.Secrets.Deployment())
	if err != nil {
		f.log.Warn("reconcile: the pool's snapshots cannot be listed", "pool", p.name, "err", err)
		return
	}
	known := map[string]bool{}
	for _, record := range records {
		if record.Pool == p.name {
			known[record.CopyName] = true
			f.repairSnapshot(ctx, p, record, copies)
		}
	}
	for _, one := range copies {
		if !known[one.Name] && time.Since(one.CreatedAt) > f.cfg.Timing.Grace {
			f.removeCopy(ctx, p, one)
		}
	}
}

// repairSnapshot brings one record in order. Nobody got the id of one whose facade died at it, so that it is removed.
func (f *Fleet) repairSnapshot(ctx context.Context, p *pool, record store.Snapshot, copies []adapters.Snapshot) {
	if record.State == store.SnapshotReady || f.moves.get(record.SandboxID) != nil {
		return
	}
	current, err := f.store.Snapshots.Get(ctx, record.ID)
	if err != nil || current.State == store.SnapshotReady {
		return // it was finished since
	}
	for _, one := range copies {
		if one.Name != record.CopyName {
			continue
		}
		f.log.Info("reconcile: the copy of a half-done snapshot is removed", "pool", p.name, "copy", one.Name)
		if err := f.forget(ctx, p, current, one.Ref); err != nil {
			f.log.Error("reconcile: a copy could not be removed", "pool", p.name, "copy", one.Name, "err", err)
		}
		return
	}
	if time.Since(record.CreatedAt) > max(f.cfg.Timing.Grace, f.cfg.Timing.Change) {
		f.dropSnapshot(ctx, record.ID)
	}
}

// removeCopy removes a copy of ours that no record knows.
func (f *Fleet) removeCopy(ctx context.Context, p *pool, one adapters.Snapshot) {
	f.log.Warn("reconcile: removing a copy that no record knows", "pool", p.name, "copy", one.Name)
	if err := p.forget(ctx, one); err != nil {
		f.log.Error("reconcile: a copy could not be removed", "pool", p.name, "copy", one.Name, "err", err)
	}
}
