package fleet

import (
	"context"
	"sync"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/store"
)

// home is what the process remembers of one running sandbox. All of it can be built again from the record
// and the provider.
type home struct {
	id, team string
	secure   bool
	boxID    string
	pool     *pool
	started  time.Time
	route    *Route
	gone     chan struct{}

	// extending orders calls that move the box's backstop. It is held by whoever has put something in.
	extending chan struct{}
	// reading orders reads of the journal.
	reading sync.Mutex
	// looking guards the fields below.
	looking  sync.Mutex
	last     adapters.Sample // the last sample that was looked at
	storedAt time.Time       // when a sample was last stored
}

// homes is the set of running sandboxes that this process can reach.
type homes struct {
	mu  sync.RWMutex
	all map[string]*home
}

func (h *homes) get(id string) *home {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.all[id]
}

// add returns the home that is there already, or else adds this one.
func (h *homes) add(one *home) (*home, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if there := h.all[one.id]; there != nil {
		return there, false
	}
	if h.all == nil {
		h.all = map[string]*home{}
	}
	h.all[one.id] = one
	return one, true
}

// leave forgets a sandbox and tells everybody who streams from it. Twice is fine.
func (h *homes) leave(id string) *home {
	h.mu.Lock()
	defer h.mu.Unlock()
	one := h.all[id]
	if one != nil {
		delete(h.all, id)
		close(one.gone)
	}
	return one
}

func (h *homes) list() []*home {
	h.mu.RLock()
	defer h.mu.RUnlock()
	list := make([]*home, 0, len(h.all))
	for _, one := range h.all {
		list = append(list, one)
	}
	return list
}

// open makes a running sandbox reachable.
func (f *Fleet) open(ctx context.Context, sb store.Sandbox) (*home, error) {
	if there := f.homes.get(sb.ID); there != nil {
		return there, nil
	}
	pool, err := f.poolOf(sb.Pool)
	if err != nil {
		return nil, err
	}
	gone := make(chan struct{})
	route, err := f.routeTo(ctx, pool, sb, gone)
	if err != nil {
		return nil, err
	}
	one, added := f.homes.add(&home{
		id: sb.ID, team: sb.TeamID, secure: sb.Secure, boxID: sb.BoxID, pool: pool, started: sb.StartedAt, gone: gone, route: route,
		extending: make(chan struct{}, 1),
	})
	if !added {
		return one, nil
	}
	// A kill or a pause claims the record first and then takes the home away. It may have done both before the line
	// above, so the record is looked at once more.
	record, err := f.store.Sandboxes.Get(ctx, sb.ID)
	switch {
	case err != nil:
		err = storeError(sb.ID, err)
	case record.State.Shown() == store.StatePaused:
		err = asleep(record)
	case record.State.Shown() != store.StateRunning:
		err = notFound(sb.ID)
	}
	if err != nil {
		f.homes.leave(sb.ID)
		return nil, err
	}
	f.watch(one)
	return one, nil
}

// routeTo finds the way to a sandbox.
func (f *Fleet) routeTo(ctx context.Context, pool *pool, sb store.Sandbox, gone <-chan struct{}) (*Route, error) {
	if pool.native != nil {
		return nativeRoute(ctx, pool, sb, gone)
	}
	endpoint, err := pool.Reach(ctx, sb.BoxID)
	if err != nil {
		return nil, err
	}
	envdToken, traffic := f.derive(sb)
	return &Route{
		SandboxID:       sb.ID,
		Endpoint:        endpoint,
		Transport:       f.cfg.Secrets.Transport(sb.BoxID),
		Control:         f.cfg.Secrets.Control(sb.BoxID),
		EnvdToken:       envdToken,
		TrafficToken:    traffic,
		MaskRequestHost: sb.Network.MaskRequestHost,
		Gone:            gone,
	}, nil
}

// nativeRoute is the way to a sandbox on a server of its own, which checks the tokens and does the rest itself.
func nativeRoute(ctx context.Context, pool *pool, sb store.Sandbox, gone <-chan struct{}) (*Route, error) {
	inner, err := pool.inner(ctx, sb.BoxID)
	if err != nil {
		return nil, err
	}
	return &Route{
		SandboxID: sb.ID,
		Endpoint:  inner.Port(envd.Port),
		Inner:     &inner,
		EnvdToken: inner.EnvdToken,
		Gone:      gone,
	}, nil
}

// watch ends the sandbox as soon as its box has ended by itself.
func (f *Fleet) watch(one *home) {
	if one.pool.watcher == nil {
		return
	}
	ended, err := one.pool.watcher.Ended(one.boxID)
	if err != nil {
		return // Reconcile will see it
	}
	f.tasks.start(func(ctx context.Context) {
		select {
		case <-ended:
			f.vanish(ctx, one.id, whenSeenRunning)
		case <-one.gone:
		case <-f.stopped:
		case <-ctx.Done():
		}
	})
}
