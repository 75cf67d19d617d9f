package translate

import (
	"time"

	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/store"
)

// MetricsWindow returns the time span that is asked for; a zero time leaves that end open.
func MetricsWindow(params openapi.GetSandboxMetricsParams) (from, to time.Time, err error) {
	if params.Start != nil {
		from = time.Unix(*params.Start, 0)
	}
	if params.End != nil {
		to = time.Unix(*params.End, 0)
	}
	if !from.IsZero() && !to.IsZero() && from.After(to) {
		return from, to, invalid("start must not be after end")
	}
	return from, to, nil
}

// Metrics returns samples as the wire shows them, never null.
func Metrics(samples []store.Metric) []openapi.SandboxMetric {
	shown := make([]openapi.SandboxMetric, 0, len(samples))
	for _, sample := range samples {
		shown = append(shown, Metric(sample))
	}
	return shown
}

// Metric returns one sample.
func Metric(m store.Metric) openapi.SandboxMetric {
	return openapi.SandboxMetric{
		Timestamp:     m.At.UTC(),
		TimestampUnix: m.At.Unix(),
		CPUCount:      int32(m.CPUCount),
		CPUUsedPct:    m.CPUUsedPct,
		MemUsed:       m.MemUsed,
		MemTotal:      m.MemTotal,
		MemCache:      m.MemCache,
		DiskUsed:      m.DiskUsed,
		DiskTotal:     m.DiskTotal,
	}
}

// SandboxIDs returns the ids of a bulk call, each once.
func SandboxIDs(given []string) ([]string, error) {
	seen := map[string]bool{}
	ids := make([]string, 0, len(given))
	for _, one := range given {
		id, err := SandboxID(one)
		if err != nil {
			return nil, err
		}
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids, nil
}
