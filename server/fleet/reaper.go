package fleet

import (
	"context"
	"time"

	"github.com/isthmus/isthmus/store"
)

const (
	// reapPause is the least time between two looks, so that ends that fail do not spin.
	reapPause = 20 * time.Millisecond
	// reapLook is the most, so that a clock that was set is noticed.
	reapLook = time.Second
	// reapBatch is how many ends are started by one look.
	reapBatch = 256
)

// wakeReaper tells the reaper that a deadline may have come nearer.
func (f *Fleet) wakeReaper() {
	select {
	case f.nudge <- struct{}{}:
	default: // it is told already
	}
}

// reapLoop ends sandboxes at their deadlines until ctx ends. The claim looks at the deadline again inside
// the transaction, so an extension that comes in between wins.
func (f *Fleet) reapLoop(ctx context.Context) {
	for {
		next := f.reap(ctx, time.Now())
		if !sleep(ctx, reapPause) {
			return
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-f.nudge:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// expireLater ends a sandbox whose deadline has passed, or pauses it where that was asked for.
func (f *Fleet) expireLater(ctx context.Context, id string, at time.Time) {
	sb, err := f.store.Sandboxes.Get(ctx, id)
	if err == nil && sb.AutoPause {
		f.aloneLater(id, func(ctx context.Context) (store.Sandbox, error) { return f.pauseAtEnd(ctx, sb, whenDue(at)) })
		return
	}
	f.endLater(id, "timed out", whenDue(at))
}

// reap starts the end of what is due at a time and returns how long it is until the next look.
func (f *Fleet) reap(ctx context.Context, at time.Time) time.Duration {
	due, next, err := f.store.Sandboxes.Due(ctx, at, reapBatch)
	if err != nil {
		if ctx.Err() == nil {
			f.log.Error("the reaper cannot read deadlines: it is tried again", "err", err)
		}
		return reapLook
	}
	for _, id := range due {
		f.expireLater(ctx, id, at)
	}
	if next.IsZero() {
		return reapLook
	}
	return min(max(next.Sub(at), 0), reapLook)
}
