package e2b

import (
	"context"
	"net/http"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// metric is a sample of the server.
type metric struct {
	Timestamp  time.Time `json:"timestamp"`
	CPUCount   int       `json:"cpuCount"`
	CPUUsedPct float64   `json:"cpuUsedPct"`
	MemUsed    int64     `json:"memUsed"`
	MemTotal   int64     `json:"memTotal"`
	MemCache   int64     `json:"memCache"`
	DiskUsed   int64     `json:"diskUsed"`
	DiskTotal  int64     `json:"diskTotal"`
}

// usage adds up the processor time that a server tells as shares of the time between its samples.
type usage struct {
	last time.Time
	used time.Duration
}

func (u *usage) add(m metric, since time.Time) time.Duration {
	if u.last.IsZero() {
		u.last = since
	}
	if span := m.Timestamp.Sub(u.last); span > 0 {
		u.used += time.Duration(m.CPUUsedPct / 100 * float64(m.CPUCount) * float64(span))
		u.last = m.Timestamp
	}
	return u.used
}

// Measure returns the server's newest sample. KindUnavailable while it has none.
func (p *Provider) Measure(ctx context.Context, boxID string) (adapters.Sample, error) {
	inner, err := p.innerOf(ctx, boxID)
	if err != nil {
		return adapters.Sample{}, err
	}
	var all []metric
	if _, err := p.api.send(ctx, request{method: http.MethodGet, path: "/sandboxes/" + inner + "/metrics", into: &all}); err != nil {
		return adapters.Sample{}, p.lost(boxID, err)
	}
	if len(all) == 0 {
		return adapters.Sample{}, adapters.Errorf(adapters.KindUnavailable, "the server of the pool has not measured the sandbox yet: try again in a few seconds")
	}
	if all[len(all)-1].Timestamp.IsZero() {
		return adapters.Sample{}, misread(false, nil, "it describes a sample without its time")
	}
	return p.sample(boxID, all), nil
}

func (p *Provider) sample(boxID string, all []metric) adapters.Sample {
	last := all[len(all)-1]
	s := adapters.Sample{
		At: last.Timestamp, CPUCount: last.CPUCount, MemUsed: last.MemUsed, MemTotal: last.MemTotal, MemCache: last.MemCache,
		DiskUsed: last.DiskUsed, DiskTotal: last.DiskTotal,
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.boxes[boxID]; one != nil {
		for _, m := range all {
			s.CPUTime = one.usage.add(m, all[0].Timestamp)
		}
	}
	return s
}
