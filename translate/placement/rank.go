package placement

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Objectives of ranking. Order is the configured order and stands alone; the others can be put in a sequence.
const (
	RankOrder       = "order"
	RankCost        = "cost"        // the estimated price of an hour
	RankStartup     = "startup"     // the median time of a create
	RankReliability = "reliability" // the share of creates that succeed
	RankBalanced    = "balanced"    // a weighted mean of the three and of the region
	RankRegion      = "region"      // lies in a preferred region
	RankShape       = "shape"       // bills in the way that suits the shape of the work
)

func objectives() []string {
	return []string{RankOrder, RankCost, RankStartup, RankReliability, RankBalanced, RankRegion, RankShape}
}

// Shapes of work, and modes of affinity and spreading.
const (
	workloadBursty    = "bursty"
	workloadLongLived = "long_lived"
	workloadGPU       = "gpu"

	modeSoft = "soft"
	modeHard = "hard"
)

// Settings are the operator's choices for ranking. The zero value is usable.
type Settings struct {
	// Rank is used when a request states none; empty: the configured order.
	Rank []string `json:"rank,omitempty"`
	// Tolerance says by objective which difference counts as none: of cost and startup as a share of the best
	// figure, of the others in their own unit, 0 to 1. What is missing has the default.
	Tolerance map[string]float64 `json:"tolerance,omitempty"`
	// Weights are those of cost, startup, reliability and region in the balanced score. What is missing has
	// the default.
	Weights map[string]float64 `json:"weights,omitempty"`
}

// Check returns an error when the sequence holds what is no objective, or order beside others.
func (s Settings) Check() error {
	_, err := FromPairs(PoolDefault, map[string]string{"rank": strings.Join(s.Rank, ",")}, nil)
	return err
}

// defaultTolerance keeps noise from deciding: live figures move all the time.
func defaultTolerance() map[string]float64 {
	return map[string]float64{RankCost: 0.05, RankStartup: 0.1, RankReliability: 0.02, RankBalanced: 0.02}
}

func defaultWeights() map[string]float64 {
	return map[string]float64{RankCost: 1, RankStartup: 1, RankReliability: 2, RankRegion: 1}
}

// priorCreates is how many creates of average success each pool is credited with, so that one failed create of
// a pool without a history does not put it behind a pool that fails every fifth.
const priorCreates = 10

// figures are one pool's figures by objective, lower is better; NaN is not known.
type figures [6]float64

// slot is where the figure of an objective is.
func slot(objective string) int {
	return slices.Index([]string{RankCost, RankStartup, RankReliability, RankBalanced, RankRegion, RankShape}, objective)
}

func (f *figures) get(objective string) (value float64, known bool) {
	value = f[slot(objective)]
	return value, !math.IsNaN(value)
}

func (f *figures) set(objective string, value float64) { f[slot(objective)] = value }

// Figure is what the ranking saw of one pool for one objective: US dollars an hour, seconds, or a share.
type Figure struct {
	Objective string  `json:"objective"`
	Value     float64 `json:"value"`
}

// sequence is the ranking of a request: its own, then that of its shape of work, then the operator's.
func sequence(r Requirements, s Settings) []string {
	switch {
	case len(r.Rank) > 0:
		return r.Rank
	case r.Workload == workloadGPU:
		return []string{RankCost}
	case r.Workload != "":
		return []string{RankShape, RankCost}
	case len(s.Rank) > 0:
		return s.Rank
	}
	return []string{RankOrder}
}

// rank puts the pools that qualify in the order in which they are tried: by the tiers of the destination, then
// by affinity, then by spreading, then by the objectives, then by weight, then as configured. The order depends
// on its input alone.
func rank(eligible []*candidate, r Requirements, by []string, s Settings) []*candidate {
	if slices.Equal(by, []string{RankOrder}) {
		by = nil
	}
	for _, c := range eligible {
		measure(c, &r)
	}
	smooth(eligible)
	if contains(by, RankBalanced) {
		balance(eligible, merged(defaultWeights(), s.Weights), len(r.Near) > 0)
	}
	tolerance := merged(defaultTolerance(), s.Tolerance)
	var order []*candidate
	for _, group := range grouped(eligible, r) {
		order = append(order, sorted(group, by, tolerance, len(by) > 0)...)
	}
	return order
}

// measure takes the figures of one pool.
func measure(c *candidate, r *Requirements) {
	pool, live := &c.offer.Pool, &c.offer.Live
	for i := range c.values {
		c.values[i] = math.NaN()
	}
	c.figures = make([]Figure, 0, len(c.values))
	note := func(known bool, objective string, value, shown float64) {
		if known {
			c.values.set(objective, value)
			c.figures = append(c.figures, Figure{objective, shown})
		}
	}
	if c.cost != nil {
		note(true, RankCost, c.cost.Hour, c.cost.Hour)
	}
	start := time.Duration(live.StartP50).Seconds()
	note(start > 0, RankStartup, start, start)
	note(live.Creates > 0, RankReliability, 1-live.SuccessRate, live.SuccessRate)
	far := 1.0
	if slices.ContainsFunc(pool.Regions, func(region Region) bool {
		return (region.Name == c.region || c.region == "") && region.inOneOf(r.Near)
	}) {
		far = 0
	}
	note(len(pool.Regions) > 0 && len(r.Near) > 0, RankRegion, far, 1-far)
	misfit, known := shapeMisfit(r.Workload, pool.Price.Billing)
	note(known, RankShape, misfit, 1-misfit)
}

// shapeMisfit is 0 where the way of billing suits the shape of the work, 1 where it does not.
func shapeMisfit(workload, billing string) (misfit float64, known bool) {
	var best []string
	switch workload {
	case workloadBursty: // pays for its idle time, unless only active CPU is billed
		best = []string{BillActiveCPU, BillSession, BillProvisioned}
	case workloadLongLived: // a flat price, or one's own machines
		best = []string{BillSession, BillProvisioned, BillActiveCPU}
	}
	at := slices.Index(best, billing)
	return float64(at) / 2, at >= 0
}

// smooth credits each pool with some creates of average success.
func smooth(eligible []*candidate) {
	var failures, creates float64
	for _, c := range eligible {
		n := float64(c.offer.Live.Creates)
		failures += (1 - c.offer.Live.SuccessRate) * n
		creates += n
	}
	for _, c := range eligible {
		if failed, known := c.values.get(RankReliability); known {
			n := float64(c.offer.Live.Creates)
			c.values.set(RankReliability, (failed*n+failures/creates*priorCreates)/(n+priorCreates))
		}
	}
}

// balance adds the balanced score: the weighted mean of the objectives, each from the best pool's 0 to the
// worst one's 1. What is not known counts as the middle.
func balance(eligible []*candidate, weights map[string]float64, near bool) {
	var total float64
	sums := make([]float64, len(eligible))
	for _, objective := range []string{RankCost, RankStartup, RankReliability, RankRegion} {
		weight := weights[objective]
		if objective == RankRegion && !near {
			continue
		}
		total += weight
		low, high := bounds(eligible, objective)
		for i, c := range eligible {
			switch v, known := c.values.get(objective); {
			case !known:
				sums[i] += weight / 2
			case high > low:
				sums[i] += weight * (v - low) / (high - low)
			}
		}
	}
	for i, c := range eligible {
		score := 1.0
		if total > 0 {
			score = 1 - sums[i]/total
		}
		score *= c.weight()
		c.values.set(RankBalanced, 1-score)
		c.figures = append(c.figures, Figure{RankBalanced, score})
	}
}

func (c *candidate) weight() float64 { return cmp.Or(c.offer.Pool.Weight, 1) }

func bounds(eligible []*candidate, objective string) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, c := range eligible {
		if v, known := c.values.get(objective); known {
			low, high = min(low, v), max(high, v)
		}
	}
	return low, high
}

// grouped splits the pools into those that go before others whatever their figures are.
func grouped(eligible []*candidate, r Requirements) [][]*candidate {
	before := func(a, b *candidate) int {
		order := cmp.Compare(a.tier, b.tier)
		if order == 0 && r.Affinity != "" {
			order = cmp.Compare(b.offer.Live.Affine, a.offer.Live.Affine)
		}
		if order == 0 && r.Spread != "" {
			order = cmp.Compare(a.offer.Live.Spread, b.offer.Live.Spread)
		}
		return order
	}
	all := slices.Clone(eligible)
	slices.SortStableFunc(all, before)
	var groups [][]*candidate
	for i, c := range all {
		if i == 0 || before(all[i-1], c) != 0 {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], c)
	}
	return groups
}

// sorted orders a group by the first objective, and what is about equal in it by the rest. About equal to the
// best of a run: so the order is total, which comparing each two with a tolerance would not be.
func sorted(group []*candidate, by []string, tolerance map[string]float64, weighted bool) []*candidate {
	if len(by) == 0 {
		slices.SortStableFunc(group, func(a, b *candidate) int {
			if weighted && a.weight() != b.weight() {
				return cmp.Compare(b.weight(), a.weight())
			}
			return cmp.Compare(a.position, b.position)
		})
		return group
	}
	objective := by[0]
	value := neutral(group, objective)
	slices.SortStableFunc(group, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(value(a), value(b)), cmp.Compare(a.position, b.position))
	})
	var order []*candidate
	for start := 0; start < len(group); {
		best := value(group[start])
		reach := best + tolerance[objective]
		if objective == RankCost || objective == RankStartup {
			reach = best * (1 + tolerance[objective])
		}
		end := start + 1
		for end < len(group) && value(group[end]) <= reach {
			end++
		}
		order = append(order, sorted(group[start:end], by[1:], tolerance, weighted)...)
		start = end
	}
	return order
}

// neutral reads an objective's figure; one that is not known counts as the median of those that are.
func neutral(group []*candidate, objective string) func(*candidate) float64 {
	var all []float64
	for _, c := range group {
		if v, known := c.values.get(objective); known {
			all = append(all, v)
		}
	}
	middle := 0.0
	if len(all) > 0 {
		slices.Sort(all)
		middle = (all[(len(all)-1)/2] + all[len(all)/2]) / 2
	}
	return func(c *candidate) float64 {
		if v, known := c.values.get(objective); known {
			return v
		}
		return middle
	}
}

// merged is the defaults with the operator's figures in their place.
func merged(defaults, stated map[string]float64) map[string]float64 {
	maps.Copy(defaults, stated)
	return defaults
}
