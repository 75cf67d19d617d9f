package fleet

import (
	"context"
	"sync"
	"time"
)

// tasks owns the goroutines that may outlive the call which started them, for example a create whose client
// has hung up. Run waits for all of them.
type tasks struct {
	ctx    context.Context // of the work itself, ended by cancel
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

func newTasks() *tasks {
	ctx, cancel := context.WithCancel(context.Background())
	return &tasks{ctx: ctx, cancel: cancel}
}

// start runs fn in a goroutine of its own. It reports false, and runs nothing, after close.
func (t *tasks) start(fn func(ctx context.Context)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.wg.Go(func() { fn(t.ctx) })
	return true
}

// close lets nothing new start.
func (t *tasks) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
}

// wait returns when all has ended. What has not ended in time is cancelled.
func (t *tasks) wait(within time.Duration) {
	timer := time.AfterFunc(within, t.cancel)
	defer timer.Stop()
	t.wg.Wait()
	t.cancel()
}
