package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
)

// minRefresh is the least that a refresh gives.
const minRefresh = 15 * time.Second

// SetTimeout moves the end of a sandbox to d from now, earlier or later, but never beyond its longest life:
// a sandbox that is older than that already is KindInvalid. 0 ends it at once.
func (f *Fleet) SetTimeout(ctx context.Context, teamID, id string, d time.Duration) error {
	if d < 0 {
		return adapters.Errorf(adapters.KindInvalid, "timeout must not be negative")
	}
	if d == 0 {
		return f.expireNow(ctx, teamID, id)
	}
	// It is not noted in the log: clients that keep a sandbox alive by this would fill it.
	_, err := f.setEnd(ctx, teamID, id, d, false)
	return err
}

// Refresh makes sure that a sandbox lives for at least d from now, and at least 15 s.
func (f *Fleet) Refresh(ctx context.Context, teamID, id string, d time.Duration) error {
	_, err := f.setEnd(ctx, teamID, id, max(d, minRefresh), true)
	return err
}

func (f *Fleet) expireNow(ctx context.Context, teamID, id string) error {
	sb, err := f.owned(ctx, teamID, id)
	switch {
	case err != nil:
		return err
	case sb.State == store.StateKilling:
		return endingError(id)
	case sb.State.Shown() != store.StateRunning:
		return asleep(sb)
	case sb.AutoPause:
		_, err := f.alone(ctx, id, func(ctx context.Context) (store.Sandbox, error) { return f.pauseAtEnd(ctx, sb, whenAwake) })
		return err
	}
	return f.end(ctx, id, "timed out", whenRunning)
}

// setEnd moves the deadline of a running sandbox, first in the record and then the box's backstop.
func (f *Fleet) setEnd(ctx context.Context, teamID, id string, d time.Duration, onlyExtend bool) (store.Sandbox, error) {
	sb, err := f.store.Sandboxes.Change(ctx, id, func(record *store.Sandbox) error {
		return f.moveEnd(record, teamID, d, onlyExtend)
	})
	if err != nil {
		return store.Sandbox{}, storeError(id, err)
	}
	f.wakeReaper()
	if err := f.pushBackstop(ctx, sb); err != nil {
		return store.Sandbox{}, err
	}
	return sb, nil
}

// pushBackstop moves the box's own deadline behind the record's. That the box is gone is an error; that it
// cannot be told now is not, because Reconcile tells it again, long before the slack is used up.
func (f *Fleet) pushBackstop(ctx context.Context, sb store.Sandbox) error {
	one, err := f.open(ctx, sb)
	if err == nil {
		err = f.extend(ctx, one)
	}
	if errors.Is(err, errAsleep) || adapters.KindOf(err) == adapters.KindNotFound {
		return f.lost(sb.ID, err)
	}
	if err != nil {
		f.log.Warn("a box's backstop could not be moved: it is tried again", "pool", sb.Pool, "box", sb.BoxID, "err", err)
	}
	return nil
}

// longestLife is how long a sandbox may run from its start or its last resume: as configured, and no longer than its
// pool lets it. One that is to be paused at its end must be so before its place ends it: it leaves time for that.
func (f *Fleet) longestLife(sb store.Sandbox) time.Duration {
	p := f.pools.get(sb.Pool)
	if p == nil {
		return f.cfg.LongestLife
	}
	most := time.Duration(p.terms.Load().facts.MaxLife)
	if most <= 0 {
		return f.cfg.LongestLife
	}
	if sb.AutoPause {
		most -= min(f.cfg.Timing.Change, most/10)
	}
	return min(most, f.cfg.LongestLife)
}

// moveEnd is the rule of deadlines, pure but for the clock.
func (f *Fleet) moveEnd(record *store.Sandbox, teamID string, d time.Duration, onlyExtend bool) error {
	switch {
	case record.TeamID != teamID || record.State == store.StateCreating:
		return notFound(record.ID)
	case record.State == store.StateKilling:
		return endingError(record.ID)
	case record.State.Shown() != store.StateRunning:
		return asleep(*record)
	}
	longest := f.longestLife(*record)
	at, last := now(), record.StartedAt.Add(longest)
	if !at.Before(last) {
		return adapters.Errorf(adapters.KindInvalid, "sandbox %s has reached its longest life of %s: create a new one", record.ID, longest)
	}
	end := at.Add(d)
	if end.After(last) {
		end = last
	}
	if onlyExtend && end.Before(record.EndAt) {
		return nil
	}
	record.EndAt, record.PauseDueAt = end, time.Time{}
	return nil
}

// extend moves the box's backstop to where the record's deadline now is. Calls for one box follow each
// other and each reads the record anew, so that the last one to arrive leaves the newest deadline.
func (f *Fleet) extend(ctx context.Context, one *home) error {
	if one.pool.extender == nil {
		return nil
	}
	select {
	case one.extending <- struct{}{}:
		defer func() { <-one.extending }()
	case <-ctx.Done():
		return ctx.Err()
	}
	sb, err := f.store.Sandboxes.Get(ctx, one.id)
	if err != nil {
		return storeError(one.id, err)
	}
	return one.pool.extend(ctx, one.boxID, sb.EndAt.Add(slack(sb)))
}

// lost turns an adapter's "no such box" into ours, and has the remains cleared away.
func (f *Fleet) lost(id string, err error) error {
	if adapters.KindOf(err) != adapters.KindNotFound || errors.Is(err, errAsleep) {
		return err
	}
	f.endLater(id, "ended by itself", whenSeenRunning)
	return notFound(id)
}

// lostFor is lost for a move that has looked at the box itself.
func (f *Fleet) lostFor(id string) error {
	f.endLater(id, "ended by itself", whenRunning)
	return notFound(id)
}
