package fleet

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
)

// reconcileLoop repairs at the interval until ctx ends.
func (f *Fleet) reconcileLoop(ctx context.Context) {
	for sleep(ctx, f.cfg.Timing.Reconcile) {
		f.Reconcile(ctx)
	}
}

// reconcileFirst repairs once and tells that the fleet is ready. A provider that does not answer does not keep it
// from that: the sandboxes of the others are served.
func (f *Fleet) reconcileFirst(ctx context.Context) {
	ready := sync.OnceFunc(func() { close(f.ready) })
	timer := time.AfterFunc(f.cfg.Timing.Call, ready)
	defer timer.Stop()
	f.Reconcile(ctx)
	ready()
}

// Reconcile compares the records with the providers' own lists and repairs what a crash, a provider or an
// operator left: creates are finished, boxes that are gone take their records with them, killings that were
// cut off go on, boxes that nobody knows are destroyed, and backstops are moved again. A pool that cannot be
// listed is left alone: that it is away does not mean that its boxes are gone.
func (f *Fleet) Reconcile(ctx context.Context) {
	// Records first: one that says running was running when the list is taken afterwards.
	records, err := f.store.Sandboxes.All(ctx)
	if err != nil && ctx.Err() != nil {
		return
	}
	if err != nil {
		f.log.Error("reconcile: the records cannot be read", "err", err)
		return
	}
	var work sync.WaitGroup
	for _, p := range f.pools.all() {
		work.Go(func() { f.reconcilePool(ctx, p, records) })
	}
	work.Wait()
}

func (f *Fleet) reconcilePool(ctx context.Context, p *pool, records []store.Sandbox) {
	boxes, err := p.List(ctx, f.cfg.Secrets.Deployment())
	if err != nil {
		f.log.Warn("reconcile: the pool cannot be listed", "pool", p.name, "err", err)
		return
	}
	f.repair(ctx, p, records, boxes)
	f.repairSnapshots(ctx, p)
}

// repair brings one pool in order, a few sandboxes at a time.
func (f *Fleet) repair(ctx context.Context, p *pool, records []store.Sandbox, boxes []adapters.Box) {
	byID := make(map[string]adapters.Box, len(boxes))
	for _, box := range boxes {
		byID[box.ID] = box
	}
	var work sync.WaitGroup
	room := make(chan struct{}, 8)
	do := func(fn func()) {
		room <- struct{}{}
		work.Go(func() { defer func() { <-room }(); fn() })
	}
	known := make(map[string]bool, len(records))
	for _, record := range records {
		if record.Pool != p.name {
			continue
		}
		known[record.BoxID] = true
		box, there := byID[record.BoxID]
		do(func() { f.repairOne(ctx, p, record, box, there) })
	}
	for _, box := range boxes {
		if box.SandboxID == "" && p.stock != nil {
			continue // fillLoop decides about what is in stock
		}
		if !known[box.ID] && time.Since(box.CreatedAt) > f.cfg.Timing.Grace {
			do(func() { f.removeOrphan(ctx, p, box) })
		}
	}
	work.Wait()
}

// repairOne brings one sandbox in order. Work on it that is in progress is left alone.
func (f *Fleet) repairOne(ctx context.Context, p *pool, record store.Sandbox, box adapters.Box, there bool) {
	switch record.State {
	case store.StateCreating:
		if f.makings.get(record.ID) == nil {
			f.finishLater(record)
		}
	case store.StateKilling:
		_ = f.end(ctx, record.ID, "killed", whenRunning)
	case store.StatePausing, store.StateResuming, store.StateSnapshotting:
		f.aloneLater(record.ID, func(ctx context.Context) (store.Sandbox, error) { return f.finishMove(ctx, record.ID) })
	case store.StateRunning, store.StatePaused:
		paused := record.State == store.StatePaused
		switch {
		case (!there || !box.Alive) && f.isGone(ctx, p, record.BoxID):
			f.vanish(ctx, record.ID, whenRunning)
		case there && box.Alive && box.Paused != paused:
			f.aloneLater(record.ID, func(ctx context.Context) (store.Sandbox, error) { return f.follow(ctx, p, record.ID) })
		case !paused:
			f.keep(ctx, record)
		}
	}
}

// finishMove brings a pause, a resume or a snapshot to an end whose facade died.
func (f *Fleet) finishMove(ctx context.Context, id string) (store.Sandbox, error) {
	sb, err := f.store.Sandboxes.Get(ctx, id)
	if err != nil {
		return store.Sandbox{}, storeError(id, err)
	}
	f.log.Info("reconcile: a half-done transition is finished", "sandbox", id, "state", sb.State)
	switch sb.State {
	case store.StatePausing:
		return f.finishPause(ctx, sb)
	case store.StateResuming:
		return f.finishResume(ctx, sb)
	case store.StateSnapshotting:
		return f.snapshotEnds(ctx, sb)
	}
	return sb, nil // it was finished since
}

// follow brings record and box together again where one is paused and the other is not. A place that stopped a box by
// itself is right: its sandbox is paused. A box that runs although its sandbox is paused is paused again.
func (f *Fleet) follow(ctx context.Context, p *pool, id string) (store.Sandbox, error) {
	sb, err := f.store.Sandboxes.Get(ctx, id)
	if err != nil {
		return store.Sandbox{}, storeError(id, err)
	}
	box, err := p.Get(ctx, sb.BoxID)
	if err != nil || !box.Alive {
		return sb, err // the next look decides
	}
	switch {
	case sb.State == store.StateRunning && box.Paused:
		f.log.Warn("reconcile: its place has stopped a sandbox: it is paused", "sandbox", id, "pool", p.name)
		sb, err = f.claimPause(ctx, id, f.keptBy(sb), whenAwake)
		if err == nil {
			f.homes.leave(id)
			sb, err = f.paused(ctx, sb)
		}
	case sb.State == store.StatePaused && !box.Paused && p.pauser != nil:
		f.log.Warn("reconcile: a paused sandbox runs: it is paused again", "sandbox", id, "pool", p.name)
		err = p.pause(ctx, sb.BoxID, adapters.Level(sb.PauseLevel))
	}
	if err != nil {
		f.log.Warn("reconcile: a sandbox and its box are not at one yet", "sandbox", id, "err", err)
	}
	return sb, err
}

// keptBy is what a box keeps that its place has stopped: what our pause asked for when it may have been late, or the
// least.
func (f *Fleet) keptBy(sb store.Sandbox) adapters.Level {
	if sb.PauseTried != "" && now().Sub(sb.PauseTriedAt) <= 2*max(f.cfg.Timing.Change, f.cfg.Timing.Reconcile) {
		return adapters.Level(sb.PauseTried)
	}
	return adapters.LevelFilesystem
}

// isGone asks for the box itself, because a list may be behind the times.
func (f *Fleet) isGone(ctx context.Context, p *pool, boxID string) bool {
	box, err := p.Get(ctx, boxID)
	if err != nil {
		return adapters.KindOf(err) == adapters.KindNotFound
	}
	return !box.Alive
}

// keep makes a running sandbox reachable, moves its backstop again, and has its place follow its network.
func (f *Fleet) keep(ctx context.Context, record store.Sandbox) {
	if record.NetworkPending {
		f.aloneLater(record.ID, func(ctx context.Context) (store.Sandbox, error) { return f.applyNetwork(ctx, record.ID) })
	}
	one, err := f.open(ctx, record)
	if err == nil {
		err = f.extend(ctx, one)
	}
	switch {
	case err == nil || errors.Is(err, errAsleep): // it was paused meanwhile
	case adapters.KindOf(err) == adapters.KindNotFound:
		f.vanish(ctx, record.ID, whenSeenRunning)
	default:
		f.log.Warn("reconcile: a sandbox cannot be reached and is kept", "sandbox", record.ID, "err", err)
	}
}

// removeOrphan destroys a box of ours that no record knows.
func (f *Fleet) removeOrphan(ctx context.Context, p *pool, box adapters.Box) {
	if _, err := f.store.Sandboxes.ByBox(ctx, p.name, box.ID); !errors.Is(err, store.ErrNotFound) {
		return // it has one by now
	}
	f.log.Warn("reconcile: destroying a box that no record knows", "pool", p.name, "box", box.ID)
	if err := p.Destroy(ctx, box.ID); err != nil {
		f.log.Error("reconcile: a box could not be destroyed", "pool", p.name, "box", box.ID, "err", err)
		return
	}
	f.stats.orphan()
}

// finishLater finishes a create that nobody works on any more, in a task of its own: one with an idempotency
// key is adopted when its box is there, one without is removed, because nobody knows its id. So is one whose box was
// still to be checked against what was required, which the record does not say: the repeat makes another. It returns
// the create that is in progress, or nil when the facade is stopping.
func (f *Fleet) finishLater(record store.Sandbox) *making {
	m := f.makings.begin(record.ID, true)
	if m == nil {
		return f.makings.get(record.ID)
	}
	if !f.tasks.start(func(ctx context.Context) {
		sandbox, err := f.finishMaking(ctx, record.ID)
		f.makings.finish(m, sandbox, err)
	}) {
		f.makings.finish(m, store.Sandbox{}, stopping())
		return nil
	}
	return m
}

func (f *Fleet) finishMaking(ctx context.Context, id string) (store.Sandbox, error) {
	record, err := f.store.Sandboxes.Get(ctx, id)
	if err != nil {
		return store.Sandbox{}, storeError(id, err)
	}
	if record.State != store.StateCreating {
		return record, nil // it was finished since
	}
	p, err := f.poolOf(record.Pool)
	if err != nil {
		return store.Sandbox{}, err
	}
	if record.CreateKey != "" && !record.ToCheck && f.lookUp(ctx, p, record.BoxID, record.Attempt) == nil {
		f.log.Info("reconcile: a half-done create is completed", "sandbox", id)
		return f.settled(ctx, record)
	}
	if err := f.absent(ctx, p, record.BoxID, record.Attempt); err != nil {
		return store.Sandbox{}, err
	}
	f.log.Info("reconcile: a half-done create is removed", "sandbox", id)
	f.abandon(ctx, record)
	return store.Sandbox{}, notFound(id)
}
