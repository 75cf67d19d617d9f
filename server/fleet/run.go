package fleet

import (
	"context"
	"sync"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
)

// killAllTime bounds each step of the ending of all sandboxes at exit.
const killAllTime = time.Minute

// Run does the fleet's work until ctx ends: the providers' background work, deadlines, repairs and samples.
//
// It stops in two phases. First nothing new is begun and what was begun gets time to finish; with KillOnExit
// every sandbox is then ended, and what is in stock is in any case. Only after that the providers' work stops. When it returns, all has ended.
func (f *Fleet) Run(ctx context.Context) error {
	providers, stopProviders := context.WithCancel(context.WithoutCancel(ctx))
	defer stopProviders()
	failed := make(chan error, 1)
	f.carryAll(providers, func(err error) {
		select {
		case failed <- err:
		default: // one is enough to stop
		}
	})
	err := f.work(ctx, failed)
	f.carryNoMore()
	if f.cfg.KillOnExit {
		f.killAll()
	}
	f.tasks.close()
	f.tasks.wait(f.cfg.Timing.Stop)
	f.drainStocks()
	stopProviders()
	f.carrier.work.Wait()
	return err
}

// work runs the loops until ctx ends or a provider fails, and returns when all of them have ended. The error is the
// provider's.
func (f *Fleet) work(ctx context.Context, failed <-chan error) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var loops sync.WaitGroup
	loops.Go(func() { f.reapLoop(ctx) })
	loops.Go(func() { f.sampleLoop(ctx) })
	loops.Go(func() {
		f.reconcileFirst(ctx)
		f.reconcileLoop(ctx)
	})
	select {
	case <-ctx.Done():
	case err = <-failed:
		cancel()
	}
	close(f.stopped)
	loops.Wait()
	return err
}

// killAll ends every sandbox. Those that run go first, because a create in progress may take its time.
func (f *Fleet) killAll() {
	f.killRecords(func(sb store.Sandbox) bool { return sb.State != store.StateCreating })
	if left := f.awaitMakings(); left > 0 {
		f.log.Error("exit: creates are still in progress: what they make is removed at the next start", "creates", left)
	}
	f.killRecords(func(sb store.Sandbox) bool { return f.makings.get(sb.ID) == nil })
}

// awaitMakings waits for the creates in progress and returns how many are left.
func (f *Fleet) awaitMakings() (left int) {
	ctx, cancel := context.WithTimeout(context.Background(), killAllTime)
	defer cancel()
	for _, m := range f.makings.list() {
		select {
		case <-m.done:
		case <-ctx.Done():
			return len(f.makings.list())
		}
	}
	return 0
}

// killRecords ends the sandboxes that are chosen. What could not be ended is logged.
func (f *Fleet) killRecords(chosen func(store.Sandbox) bool) {
	ctx, cancel := context.WithTimeout(context.Background(), killAllTime)
	defer cancel()
	records, err := f.store.Sandboxes.All(ctx)
	if err != nil {
		f.log.Error("exit: the records cannot be read: sandboxes are left", "err", err)
		return
	}
	var kills sync.WaitGroup
	for _, record := range records {
		if !chosen(record) {
			continue
		}
		kills.Go(func() {
			err := f.end(ctx, record.ID, "killed at exit", whenAny)
			if err != nil && adapters.KindOf(err) != adapters.KindNotFound {
				f.log.Error("exit: a sandbox is left", "sandbox", record.ID, "err", err)
			}
		})
	}
	kills.Wait()
}
