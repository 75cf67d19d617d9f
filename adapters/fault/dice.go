package fault

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
)

// dice decide, by the plan, what strikes a call.
type dice struct {
	mu      sync.Mutex
	plan    Plan
	random  *rand.Rand
	matched []int // calls that each rule matched
	struck  []int // and struck
	counts  map[string]int
}

func newDice(plan Plan) *dice {
	d := &dice{counts: map[string]int{}}
	d.change(plan)
	return d
}

func (d *dice) change(plan Plan) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.plan = plan
	d.random = rand.New(rand.NewPCG(plan.Seed, plan.Seed)) //nolint:gosec // dice, not secrets
	d.matched, d.struck = make([]int, len(plan.Rules)), make([]int, len(plan.Rules))
}

// throw returns the rule that strikes a call; the zero rule when none does.
func (d *dice) throw(call Call) Rule {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counts[string(call)]++
	for i, rule := range d.plan.Rules {
		if !d.strikes(i, call) {
			continue
		}
		d.counts[string(call)+"/"+string(rule.Fault)]++
		return rule
	}
	return Rule{}
}

func (d *dice) strikes(i int, call Call) bool {
	rule := d.plan.Rules[i]
	calls := rule.Calls
	if len(calls) == 0 {
		calls = natural(rule.Fault)
	}
	if !slices.Contains(calls, call) || rule.Times > 0 && d.struck[i] >= rule.Times {
		return false
	}
	d.matched[i]++
	if d.matched[i] <= rule.Skip || rule.Share > 0 && d.random.Float64() >= rule.Share {
		return false
	}
	d.struck[i]++
	return true
}

func (d *dice) seen() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.counts)
}
