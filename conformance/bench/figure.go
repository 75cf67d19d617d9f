package bench

import (
	"slices"
	"time"
)

// Figure is one number that was measured.
type Figure struct {
	// Name says what, Target of what, Unit in what: ms, MB/s, 1/s, s/GB, MB, KB, %.
	Name   string  `json:"name"`
	Target string  `json:"target"`
	Unit   string  `json:"unit"`
	Value  float64 `json:"value"`
	// Of is how many calls or rounds it was made from.
	Of int `json:"of"`
}

// Ratio compares two figures of one run.
type Ratio struct {
	Name string `json:"name"`
	// Value is the one figure by the other. It should be at most Bound, or at least, if AtLeast is set.
	Value   float64 `json:"value"`
	Bound   float64 `json:"bound"`
	AtLeast bool    `json:"atLeast,omitempty"`
}

// Holds reports whether the ratio keeps its bound.
func (r Ratio) Holds() bool {
	if r.AtLeast {
		return r.Value >= r.Bound
	}
	return r.Value <= r.Bound
}

// at returns the time that a share of the calls, in percent, do not exceed. It sorts them.
func at(times []time.Duration, percent int) time.Duration {
	slices.Sort(times)
	return times[min(len(times)*percent/100, len(times)-1)]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
