package fleet

import (
	"context"
	"sync"
)

// carrier owns the pools' own background work: it begins with Run, or when a reload adds a pool, and ends with Run,
// or when a reload removes the pool.
type carrier struct {
	mu    sync.Mutex
	begin func(*pool) // nil: Run has not begun, or is stopping
	work  sync.WaitGroup
}

// carryAll begins the work of all pools. failed is told of the first one whose work fails.
func (f *Fleet) carryAll(ctx context.Context, failed func(error)) {
	f.carrier.mu.Lock()
	defer f.carrier.mu.Unlock()
	f.carrier.begin = func(p *pool) {
		f.carrier.work.Go(func() {
			if err := f.carry(ctx, p); err != nil {
				failed(err)
			}
		})
		if p.stock != nil {
			f.tasks.start(func(work context.Context) { f.fillLoop(work, p) })
		}
	}
	for _, p := range f.pools.all() {
		f.carrier.begin(p)
	}
}

// carryAlso begins the work of a pool that a reload added. Before Run it does nothing: Run begins with all.
func (f *Fleet) carryAlso(p *pool) {
	f.carrier.mu.Lock()
	defer f.carrier.mu.Unlock()
	if f.carrier.begin != nil {
		f.carrier.begin(p)
	}
}

// carryNoMore lets no work begin.
func (f *Fleet) carryNoMore() {
	f.carrier.mu.Lock()
	defer f.carrier.mu.Unlock()
	f.carrier.begin = nil
}

// carry does one pool's own work until ctx ends or the pool is removed. Where there are other pools, the failure of
// one is no reason to stop: it gets no creates until the configuration is loaded again.
func (f *Fleet) carry(ctx context.Context, p *pool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		select {
		case <-p.removed:
		case <-ctx.Done():
		}
	}()
	err := p.Run(ctx)
	if err == nil || ctx.Err() != nil {
		return nil
	}
	f.log.Error("a pool's background work has failed", "pool", p.name, "err", err)
	if len(f.pools.all()) > 1 {
		p.health.sicken("its background work has failed: see the log")
		return nil
	}
	return err
}
