package fleet

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
)

// making is a create in progress.
type making struct {
	id   string
	keep bool // it has a key: it is completed even when nobody waits
	done chan struct{}
	// verdict says whether the one caller of a create without a key took the outcome.
	verdict chan bool
	left    chan struct{} // closed when that caller gave up
	sandbox store.Sandbox
	err     error
}

// wait returns the outcome. When ctx ends first, the sandbox without a key is given up. It is called exactly
// once for a making without a key.
func (m *making) wait(ctx context.Context) (store.Sandbox, error) {
	select {
	case <-m.done:
	case <-ctx.Done():
	}
	if m.keep {
		return m.outcome(ctx)
	}
	taken := ctx.Err() == nil
	m.verdict <- taken
	if !taken {
		close(m.left)
		return store.Sandbox{}, adapters.Wrap(adapters.KindUnavailable, ctx.Err(),
			"the sandbox was not ready in time and is removed: try again")
	}
	return m.sandbox, m.err
}

// outcome is what is known of a making with a key.
func (m *making) outcome(ctx context.Context) (store.Sandbox, error) {
	select {
	case <-m.done:
		return m.sandbox, m.err
	default:
		return store.Sandbox{}, &adapters.Error{Kind: adapters.KindUnknownOutcome, Code: "idempotency_in_progress", Err: ctx.Err(),
			Message: "the sandbox is still being made: repeat the request with the same Idempotency-Key to get it"}
	}
}

// delivered reports whether the sandbox has an owner. It waits for the caller, who is in wait.
func (m *making) delivered() bool { return m.keep || <-m.verdict }

// isLeft reports whether the caller of a create without a key gave up.
func (m *making) isLeft() bool {
	select {
	case <-m.left:
		return true
	default:
		return false
	}
}

// makings are the creates in progress, by sandbox id.
type makings struct {
	mu  sync.Mutex
	all map[string]*making
}

// begin registers a create; nil when one of this id is in progress.
func (s *makings) begin(id string, keep bool) *making {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[id] != nil {
		return nil
	}
	if s.all == nil {
		s.all = map[string]*making{}
	}
	m := &making{id: id, keep: keep, done: make(chan struct{}), verdict: make(chan bool, 1), left: make(chan struct{})}
	s.all[id] = m
	return m
}

func (s *makings) get(id string) *making {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[id]
}

func (s *makings) list() []*making {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.all))
}

func (s *makings) finish(m *making, sandbox store.Sandbox, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.sandbox, m.err = sandbox, err
	delete(s.all, m.id)
	close(m.done)
}
