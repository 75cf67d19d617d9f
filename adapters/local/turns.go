//go:build linux

package local

import (
	"context"
	"sync"
)

// turns lets one at a time change what state a box is in: pause, resume, copy or remove it.
type turns struct {
	mu   sync.Mutex
	held map[string]*turn
}

// turn is that of one box: whoever can send has it.
type turn struct {
	slot    chan struct{}
	waiting int // with the one who has it
}

// take waits for the box's turn; done passes it on.
func (t *turns) take(ctx context.Context, boxID string) (done func(), err error) {
	one := t.join(boxID)
	select {
	case one.slot <- struct{}{}:
		return func() { <-one.slot; t.leave(boxID) }, nil
	case <-ctx.Done():
		t.leave(boxID)
		return nil, ctx.Err()
	}
}

func (t *turns) join(boxID string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held[boxID] == nil {
		t.held[boxID] = &turn{slot: make(chan struct{}, 1)}
	}
	t.held[boxID].waiting++
	return t.held[boxID]
}

func (t *turns) leave(boxID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held[boxID].waiting--; t.held[boxID].waiting == 0 {
		delete(t.held, boxID)
	}
}
