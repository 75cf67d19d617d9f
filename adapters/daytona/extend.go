package daytona

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// Extend moves the end of a box: by our timer to the moment, and by Daytona's, in whole minutes, for the time when we
// are not there.
func (p *Provider) Extend(ctx context.Context, boxID string, deadline time.Time) error {
	k, there := p.recall(boxID)
	if !there || k.created.IsZero() {
		found, err := p.present(ctx, boxID)
		if err != nil {
			return err
		}
		k.sandboxID, k.created = found.ID, found.CreatedAt
	}
	err := p.setTTL(ctx, k.sandboxID, minutesBetween(k.created, deadline))
	if adapters.KindOf(err) == adapters.KindNotFound && err != nil {
		p.forget(boxID)
		return gone(boxID)
	}
	if err == nil {
		p.keeper.set(boxID, deadline)
	}
	return err
}

// setTTL sets the longest life of a sandbox, in minutes since it was made; 0: no bound.
func (p *Provider) setTTL(ctx context.Context, sandboxID string, minutes int) error {
	return p.api.insist(ctx, request{method: http.MethodPost, path: sandboxPath(sandboxID, "ttl", strconv.Itoa(minutes))})
}

// keeper knows when boxes end that this process made or extended.
type keeper struct {
	mu      sync.Mutex
	ends    map[string]time.Time
	changed chan struct{}
}

func newKeeper() *keeper {
	return &keeper{ends: map[string]time.Time{}, changed: make(chan struct{}, 1)}
}

// set moves the end of a box; the zero time is none.
func (k *keeper) set(boxID string, at time.Time) {
	k.mu.Lock()
	if at.IsZero() {
		delete(k.ends, boxID)
	} else {
		k.ends[boxID] = at
	}
	k.mu.Unlock()
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

func (k *keeper) drop(boxID string) { k.set(boxID, time.Time{}) }

// due takes the boxes whose time has come, and says when the next one's does.
func (k *keeper) due(now time.Time) (boxes []string, next time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	next = time.Hour
	for boxID, at := range k.ends {
		if left := at.Sub(now); left > 0 {
			next = min(next, left)
			continue
		}
		boxes = append(boxes, boxID)
		delete(k.ends, boxID)
	}
	return boxes, next
}

// endsAtOnce bounds how many boxes are ended at one time.
const endsAtOnce = 8

// keepTime ends boxes at their time until ctx ends. One that cannot be ended is tried again after a while; Daytona's
// own timer is behind it.
func (p *Provider) keepTime(ctx context.Context) {
	places := make(chan struct{}, endsAtOnce)
	var ending sync.WaitGroup
	defer ending.Wait()
	for {
		boxes, next := p.keeper.due(time.Now())
		for _, boxID := range boxes {
			places <- struct{}{}
			ending.Go(func() {
				defer func() { <-places }()
				if err := p.Destroy(ctx, boxID); err != nil && ctx.Err() == nil {
					p.log.Warn("a sandbox could not be ended at its time", "box", boxID, "err", err)
					p.keeper.set(boxID, time.Now().Add(time.Minute))
				}
			})
		}
		timer := time.NewTimer(next)
		select {
		case <-timer.C:
		case <-p.keeper.changed:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}
