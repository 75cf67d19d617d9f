package fleet

import (
	"context"
	"errors"
	"sync"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
)

// errMoving marks a claim that must wait for a move in progress.
var errMoving = errors.New("a transition of the sandbox is in progress")

// move is a transition of one sandbox in progress: a pause, a resume, a snapshot, a change of its network.
type move struct {
	done    chan struct{}
	sandbox store.Sandbox
	err     error
}

// wait returns when the move has ended, however it ended.
func (m *move) wait(ctx context.Context) error {
	select {
	case <-m.done:
		return nil
	case <-ctx.Done():
		return adapters.Wrap(adapters.KindUnavailable, ctx.Err(),
			"the sandbox is being paused, resumed, copied or changed, which takes longer than the request: try again")
	}
}

// moves are the transitions in progress, by sandbox id: one at a time.
type moves struct {
	mu  sync.Mutex
	all map[string]*move
}

// begin registers a move, or returns the one in progress.
func (s *moves) begin(id string) (_ *move, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if there := s.all[id]; there != nil {
		return there, false
	}
	if s.all == nil {
		s.all = map[string]*move{}
	}
	m := &move{done: make(chan struct{})}
	s.all[id] = m
	return m, true
}

func (s *moves) get(id string) *move {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[id]
}

func (s *moves) finish(id string, m *move, sandbox store.Sandbox, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.sandbox, m.err = sandbox, err
	delete(s.all, id)
	close(m.done)
}

// alone does work on a sandbox while no other move is at it. The work goes on when ctx ends, so that what was begun is
// brought to an end.
func (f *Fleet) alone(ctx context.Context, id string, work func(context.Context) (store.Sandbox, error)) (store.Sandbox, error) {
	for {
		m, mine := f.moves.begin(id)
		if mine {
			f.carryMove(id, m, work)
		}
		if err := m.wait(ctx); err != nil {
			return store.Sandbox{}, err
		}
		if mine {
			return m.sandbox, m.err
		}
	}
}

// aloneLater is alone without waiting, for those who come again: when a move is in progress, nothing is done.
func (f *Fleet) aloneLater(id string, work func(context.Context) (store.Sandbox, error)) {
	if m, mine := f.moves.begin(id); mine {
		f.carryMove(id, m, work)
	}
}

// carryMove starts the work in a task of its own.
func (f *Fleet) carryMove(id string, m *move, work func(context.Context) (store.Sandbox, error)) {
	started := f.tasks.start(func(ctx context.Context) {
		sandbox, err := work(ctx)
		f.moves.finish(id, m, sandbox, err)
	})
	if !started {
		f.moves.finish(id, m, store.Sandbox{}, stopping())
	}
}
