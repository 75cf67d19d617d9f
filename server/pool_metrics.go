package server

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/isthmus/isthmus/server/fleet"
	"github.com/isthmus/isthmus/translate/placement"
)

// poolMetrics writes what each pool's creates have shown.
func poolMetrics(text *bytes.Buffer, pools []fleet.PoolState) {
	for _, m := range []struct {
		name, help string
		value      func(fleet.PoolState) float64
	}{
		{"isthmus_pool_sandboxes", "Sandboxes that are bound to the pool.", func(p fleet.PoolState) float64 { return float64(p.Live.Sandboxes) }},
		{"isthmus_pool_starting", "Attempts at creates under way.", func(p fleet.PoolState) float64 { return float64(p.Live.Starting) }},
		{"isthmus_pool_breaker", "The breaker: 0 closed, 1 half open, 2 open.", breakerLevel},
		{"isthmus_pool_resting_seconds", "How long the pool is still left alone.", func(p fleet.PoolState) float64 { return max(0, time.Until(p.Live.RestUntil).Seconds()) }},
		{"isthmus_pool_healthy", "0 when no create is tried until the configuration is loaded again.", func(p fleet.PoolState) float64 { return flag(p.Live.Unhealthy == "") }},
		{"isthmus_pool_draining", "1 when the pool gets no new sandboxes.", func(p fleet.PoolState) float64 { return flag(p.Draining) }},
		{"isthmus_pool_success_rate", "The share of the last creates that succeeded; 0 before the first.", func(p fleet.PoolState) float64 { return p.Live.SuccessRate }},
		{"isthmus_pool_start_seconds", "The median time of the last creates.", func(p fleet.PoolState) float64 { return time.Duration(p.Live.StartP50).Seconds() }},
	} {
		fmt.Fprintf(text, "# HELP %s %s\n# TYPE %s gauge\n", m.name, m.help, m.name)
		for _, p := range pools {
			fmt.Fprintf(text, "%s{pool=%q} %g\n", m.name, p.Name, m.value(p))
		}
	}
	const attempts = "isthmus_pool_attempts_total"
	fmt.Fprintf(text, "# HELP %s Attempts at creates by outcome: ok, the kind of error, or not_tried.\n# TYPE %s counter\n", attempts, attempts)
	for _, p := range pools {
		for _, outcome := range slices.Sorted(maps.Keys(p.Attempts)) {
			fmt.Fprintf(text, "%s{pool=%q,outcome=%q} %d\n", attempts, p.Name, outcome, p.Attempts[outcome])
		}
	}
	driftMetrics(text, pools)
}

// driftMetrics writes which capabilities of each pool a provider's answers have brought into doubt.
func driftMetrics(text *bytes.Buffer, pools []fleet.PoolState) {
	const total, now = "isthmus_pool_drifts_total", "isthmus_pool_drifted"
	fmt.Fprintf(text, "# HELP %s Answers of the provider that were not understood, by capability and operation.\n# TYPE %s counter\n", total, total)
	for _, p := range pools {
		for _, d := range p.Drifts {
			fmt.Fprintf(text, "%s{pool=%q,capability=%q,operation=%q} %d\n", total, p.Name, d.Feature, d.Operation, d.Total)
		}
	}
	fmt.Fprintf(text, "# HELP %s 1 while the last answer to the operation was not understood.\n# TYPE %s gauge\n", now, now)
	for _, p := range pools {
		for _, d := range p.Drifts {
			fmt.Fprintf(text, "%s{pool=%q,capability=%q,operation=%q} %g\n", now, p.Name, d.Feature, d.Operation, flag(d.Drifted))
		}
	}
}

func breakerLevel(p fleet.PoolState) float64 {
	switch p.Live.Breaker {
	case placement.BreakerOpen:
		return 2
	case placement.BreakerHalfOpen:
		return 1
	}
	return 0
}

func flag(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
