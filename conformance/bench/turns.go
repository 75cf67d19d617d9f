package bench

import (
	"context"
	"math/rand/v2"
	"time"
)

// turns makes every target do the same, in turn, so many times, and returns the times of each. The first turn
// opens connections and is not counted. The order is another one each time, so that nobody always goes first, or after
// the same one: what ran just before leaves caches and processors as it wants them.
func turns(ctx context.Context, targets []*Target, times int, do func(context.Context, *Target) error) (map[string][]time.Duration, error) {
	took := map[string][]time.Duration{}
	order := rand.New(rand.NewPCG(1, 2)) // the same in every run
	for turn := range times + 1 {
		for _, i := range order.Perm(len(targets)) {
			t := targets[i]
			began := time.Now()
			if err := do(ctx, t); err != nil {
				return nil, err
			}
			if turn > 0 {
				took[t.Name] = append(took[t.Name], time.Since(began))
			}
		}
	}
	return took, nil
}

// latencies adds p50 and p99 of each target to the report.
func (r *Report) latencies(name string, targets []*Target, took map[string][]time.Duration) {
	for _, t := range targets {
		all := took[t.Name]
		r.add(name+" p50", t.Name, "ms", ms(at(all, 50)), len(all))
		r.add(name+" p99", t.Name, "ms", ms(at(all, 99)), len(all))
	}
}

// rates adds what each target carries of a size in its median turn, and what processor time its processes need.
func (r *Report) rates(name string, targets []*Target, took map[string][]time.Duration, used map[string]time.Duration, size int64) {
	for _, t := range targets {
		all := took[t.Name]
		r.add(name, t.Name, "MB/s", float64(size)/1e6/at(all, 50).Seconds(), len(all))
		if len(t.Processes) > 0 {
			r.add(name+", processor", t.Name, "s/GB", used[t.Name].Seconds()/float64(len(all)+1)/(float64(size)/1e9), len(all))
		}
	}
}
