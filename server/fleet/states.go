package fleet

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/translate/placement"
)

// PoolState is one pool as the operator sees it. It holds no credential.
type PoolState struct {
	placement.Pool
	Live placement.Live `json:"live"`
	// Attempts counts the attempts at creates since the start of the process: ok, the kind of the error, or not_tried.
	Attempts map[string]int64 `json:"attempts"`
	// Drifts are the capabilities of which an answer was not understood since the start of the process, also those that
	// are not in doubt any more.
	Drifts []adapters.Drift `json:"drifts,omitempty"`
}

// Doubtful reports whether a capability is in doubt now.
func (s PoolState) Doubtful(feature adapters.Feature) bool {
	return slices.ContainsFunc(s.Drifts, func(d adapters.Drift) bool { return d.Feature == feature && d.Drifted })
}

// States returns the pools in their order, as of now.
func (f *Fleet) States() []PoolState {
	var states []PoolState
	for _, p := range f.pools.all() {
		state := PoolState{Pool: p.terms.Load().facts, Live: p.health.live(time.Now()), Attempts: p.health.counts(), Drifts: p.Drifts()}
		if sandboxes, err := f.store.Sandboxes.CountIn(context.Background(), p.name); err == nil {
			state.Live.Sandboxes = sandboxes
		}
		states = append(states, state)
	}
	return states
}

// counts returns the attempts by their outcome.
func (h *health) counts() map[string]int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.attempts)
}
