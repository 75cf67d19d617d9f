package placement

import (
	"slices"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// Plan is the outcome of a decision: the pools to try, in order, and the record of how it came to be.
type Plan struct {
	Order    []Choice
	Decision Decision
}

// Choice is one pool to try, with what the sandbox would get there.
type Choice struct {
	Pool     string
	Template adapters.Template
	// Resources are the sizes to ask the provider for.
	Resources adapters.Resources
	// Region is the provider's name of the region; empty: the provider chooses.
	Region string
	// GPU is the kind and, as Max, the number to ask for; without a kind: none.
	GPU GPU
	// Need are the requirements that hold in this pool, for the check after provisioning. Read-only.
	Need *Requirements
	// Cost is nil when the pool's price is not known.
	Cost *Cost
}

// Decide filters the offers, which are in configured order, and ranks what is left: Match and Matched.Rank in one. It
// does no I/O; the same input gives the same plan. An error is a *Refusal when no pool qualifies, KindNotFound when no
// pool has the template, and KindInvalid when the destination contradicts itself; the plan then still holds the record,
// as far as it came.
func Decide(req Request, offers []Offer, now time.Time, s Settings) (Plan, error) {
	matched, err := Match(req, offers, now, s)
	if err != nil {
		return matched.plan, err
	}
	return matched.Rank()
}

// Matched are the pools of a decision, with what each of them lacks. It belongs to one create.
type Matched struct {
	plan          Plan
	all, eligible []*candidate
	needed        Requirements
	now           time.Time
	settings      Settings
}

// Match is the first half of Decide: which pools qualify. The errors are those of Decide but for a *Refusal.
func Match(req Request, offers []Offer, now time.Time, s Settings) (*Matched, error) {
	m := &Matched{needed: Needed(req), now: now, settings: s}
	m.plan.Decision = Decision{Template: req.Template, Requirements: m.needed, Rank: sequence(m.needed, s)}
	var err error
	if m.all, err = candidates(m.needed, offers, now); err != nil {
		return m, err
	}
	asked := filters(&m.needed)
	for _, c := range m.all {
		filter(c, &req, &m.needed, asked)
		c.cost = c.estimate(req.Timeout)
	}
	holdTogether(m.all, m.needed)
	m.eligible = slices.DeleteFunc(slices.Clone(m.all), func(c *candidate) bool { return len(c.unmet) > 0 })
	return m, nil
}

// Plan is what is known so far: the record, and no order.
func (m *Matched) Plan() Plan { return m.plan }

// Rank is the second half of Decide: in which order those that qualify are tried. It is called once.
func (m *Matched) Rank() (Plan, error) {
	eligible := rank(m.eligible, m.needed, m.plan.Decision.Rank, m.settings)
	m.plan.Order = make([]Choice, 0, len(eligible))
	for _, c := range eligible {
		m.plan.Order = append(m.plan.Order, c.choice())
	}
	m.plan.Decision.Candidates = considered(m.all, eligible)
	if len(eligible) == 0 {
		return m.plan, refuse(m.plan.Decision, m.all, m.now)
	}
	return m.plan, nil
}

// holdTogether applies hard affinity and hard spreading, which look at all pools that qualify.
func holdTogether(all []*candidate, r Requirements) {
	least, affine := -1, 0
	for _, c := range all {
		if !c.never() {
			affine = max(affine, c.offer.Live.Affine)
		}
		if len(c.unmet) == 0 && (least < 0 || c.offer.Live.Spread < least) {
			least = c.offer.Live.Spread
		}
	}
	for _, c := range all {
		if r.AffinityMode == modeHard && affine > 0 && c.offer.Live.Affine == 0 {
			c.notNow("affinity", r.Affinity, "the sandboxes of this name are in another pool")
		}
		if r.SpreadMode == modeHard && least >= 0 && c.offer.Live.Spread > least {
			c.notNow("spread", r.Spread, "another pool has fewer sandboxes of this name")
		}
	}
}

func (c *candidate) estimate(life time.Duration) *Cost {
	price := &c.offer.Pool.Price
	return price.Estimate(c.size, c.gpu, life, cpuActive(c.need, price))
}

func (c *candidate) choice() Choice {
	return Choice{Pool: c.offer.Pool.Name, Template: *c.offer.Template, Resources: c.size, Region: c.region,
		GPU: c.gpu, Need: c.need, Cost: c.cost}
}
