package vercel

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// deadlines are the ends of boxes as we want them. The vendor's limit is behind them, and can only be moved later.
type deadlines struct {
	mu      sync.Mutex
	at      map[string]time.Time
	changed chan struct{}
}

func newDeadlines() *deadlines {
	return &deadlines{at: map[string]time.Time{}, changed: make(chan struct{}, 1)}
}

// set notes when a box is to end; the zero time is never.
func (d *deadlines) set(boxID string, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at.IsZero() {
		delete(d.at, boxID)
	} else {
		d.at[boxID] = at
	}
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

func (d *deadlines) drop(boxID string) { d.set(boxID, time.Time{}) }

// due takes out the boxes whose time is over, and says how long it is to the next.
func (d *deadlines) due(now time.Time) (over []string, next time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	next = time.Hour
	for id, at := range d.at {
		if left := at.Sub(now); left > 0 {
			next = min(next, left)
			continue
		}
		over = append(over, id)
		delete(d.at, id)
	}
	return over, next
}

// Run stops boxes at their deadlines and bakes envd, until ctx ends.
func (p *place) Run(ctx context.Context) error {
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { p.bakery.run(ctx) })
	for {
		over, next := p.deadlines.due(time.Now())
		for _, id := range over {
			work.Go(func() { p.expire(ctx, id) })
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-p.deadlines.changed:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// again is when an end that failed is tried once more.
const again = 5 * time.Second

// expire stops a box whose time is over. Its remains stay until it is destroyed.
func (p *place) expire(ctx context.Context, boxID string) {
	v, err := p.look(ctx, boxID)
	if err == nil && !v.Sandbox.over() && !v.Sandbox.paused() {
		err = p.stop(ctx, v.Session.ID)
	}
	if err != nil && !isGone(err) && ctx.Err() == nil {
		p.log.Warn("a sandbox could not be stopped at its deadline", "box", boxID, "err", err)
		p.deadlines.set(boxID, time.Now().Add(again))
	}
}

// stop ends a session. One that has ended is success.
func (p *place) stop(ctx context.Context, session string) error {
	err := p.settled(ctx, func() error {
		return p.api.send(ctx, request{method: http.MethodPost, path: "/v2/sandboxes/sessions/" + session + "/stop", body: struct{}{}})
	})
	if isGone(err) {
		return nil
	}
	return err
}
