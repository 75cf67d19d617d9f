package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
)

// measureTime bounds one look at one box.
const measureTime = 2 * time.Second

// busyCPU is the CPU time between two looks above which a sandbox counts as in use. What an idle envd needs
// stays below it.
const busyCPU = 10 * time.Millisecond

// Metrics returns the samples of a sandbox of the team in a time span, oldest first; zero bounds are open.
func (f *Fleet) Metrics(ctx context.Context, teamID, id string, from, to time.Time) ([]store.Metric, error) {
	if _, err := f.Sandbox(ctx, teamID, id); err != nil {
		return nil, err
	}
	samples, err := f.store.Metrics.Between(ctx, id, from, to)
	return samples, storeError(id, err)
}

// LatestMetrics returns the newest sample of each of these sandboxes. Those that are unknown, of another
// team, or without a sample are left out.
func (f *Fleet) LatestMetrics(ctx context.Context, teamID string, ids []string) (map[string]store.Metric, error) {
	latest := make(map[string]store.Metric, len(ids))
	for _, id := range ids {
		if _, err := f.Sandbox(ctx, teamID, id); adapters.KindOf(err) == adapters.KindNotFound {
			continue
		} else if err != nil {
			return nil, err
		}
		sample, err := f.store.Metrics.Latest(ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, storeError(id, err)
		}
		latest[id] = sample
	}
	return latest, nil
}

// sampleLoop looks at every running sandbox at the interval until ctx ends.
func (f *Fleet) sampleLoop(ctx context.Context) {
	tick := time.NewTicker(f.cfg.Timing.Sample)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			for _, one := range f.homes.list() {
				f.sample(ctx, one)
			}
		}
	}
}

// sample looks at one sandbox, and keeps what it sees when the sandbox used CPU since the last look or none
// was kept for a minute.
func (f *Fleet) sample(ctx context.Context, one *home) {
	if one.pool.meter == nil || ctx.Err() != nil {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, measureTime)
	defer cancel()
	seen, err := one.pool.meter.Measure(bounded, one.boxID)
	if err != nil {
		f.log.Debug("a sandbox could not be measured", "sandbox", one.id, "err", err)
		return
	}
	metric, keep := one.look(seen, f.cfg.Timing.IdleSample)
	if !keep {
		return
	}
	if err := f.store.Metrics.Add(ctx, one.id, metric); err != nil {
		f.log.Warn("a sample is lost", "sandbox", one.id, "err", err)
	}
	f.collect(ctx, one, journalTime)
}

// look compares a sample with the last one. The first counts from the start of the sandbox.
func (h *home) look(seen adapters.Sample, idle time.Duration) (_ store.Metric, keep bool) {
	h.looking.Lock()
	defer h.looking.Unlock()
	last := h.last
	if last.At.IsZero() {
		last.At = h.started
	}
	h.last = seen
	used := seen.CPUTime - last.CPUTime
	if used < busyCPU && seen.At.Sub(h.storedAt) < idle {
		return store.Metric{}, false
	}
	h.storedAt = seen.At
	return store.Metric{
		At: seen.At.UTC(), CPUCount: seen.CPUCount, CPUUsedPct: percent(used, seen.At.Sub(last.At), seen.CPUCount),
		MemUsed: seen.MemUsed, MemTotal: seen.MemTotal, MemCache: seen.MemCache,
		DiskUsed: seen.DiskUsed, DiskTotal: seen.DiskTotal,
	}, true
}

// percent is the share of all CPUs together, 0 to 100, to a hundredth.
func percent(used, span time.Duration, cpus int) float64 {
	if span <= 0 || cpus <= 0 || used <= 0 {
		return 0
	}
	share := 100 * float64(used) / (float64(span) * float64(cpus))
	return float64(int(min(share, 100)*100+0.5)) / 100
}
