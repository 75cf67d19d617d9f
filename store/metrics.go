package store

import (
	"context"
	"strings"
	"time"

	"github.com/isthmus/isthmus/store/kv"
)

// MetricsLife is how long a sample is kept.
const MetricsLife = time.Hour

// Metrics keeps samples as metric/<sandbox>/<time>.
type Metrics struct {
	engine kv.Engine
}

const metricPrefix = "metric/"

// Add stores one sample of a sandbox. On a disk that is almost full it does not.
func (m Metrics) Add(ctx context.Context, sandboxID string, sample Metric) error {
	if m.engine.Low() {
		return nil
	}
	return m.engine.Update(ctx, func(tx kv.Tx) error {
		return save(tx, metricPrefix+sandboxID+"/"+stamp(sample.At), sample, MetricsLife)
	})
}

// Between returns the samples of a time span, inclusive, oldest first. A zero bound is open.
func (m Metrics) Between(ctx context.Context, sandboxID string, from, to time.Time) ([]Metric, error) {
	var samples []Metric
	err := m.engine.View(ctx, func(r kv.Reader) error {
		samples = nil
		prefix := metricPrefix + sandboxID + "/"
		for entry, err := range r.Scan(kv.Range{Prefix: prefix, From: prefix + stamp(from)}) {
			if err != nil {
				return err
			}
			if !to.IsZero() && strings.TrimPrefix(entry.Key, prefix) > stamp(to) {
				return nil
			}
			var sample Metric
			if err := decode(entry.Key, entry.Value, &sample); err != nil {
				return err
			}
			samples = append(samples, sample)
		}
		return nil
	})
	return samples, err
}

// Latest returns the newest sample of a sandbox, or ErrNotFound.
func (m Metrics) Latest(ctx context.Context, sandboxID string) (Metric, error) {
	var sample Metric
	err := m.engine.View(ctx, func(r kv.Reader) error {
		for entry, err := range r.Scan(kv.Range{Prefix: metricPrefix + sandboxID + "/", Reverse: true}) {
			if err != nil {
				return err
			}
			return decode(entry.Key, entry.Value, &sample)
		}
		return ErrNotFound
	})
	return sample, err
}
