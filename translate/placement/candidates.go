package placement

import (
	"slices"
	"strings"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// candidate is one pool on its way through the stages of a decision.
type candidate struct {
	// fields are those of the create from which requirements follow, by the requirement.
	fields   map[string]string
	offer    *Offer
	position int // in the order of the configuration, or of the pools that the requirements list
	tier     int // of the destination: a lower tier is tried first, whatever the ranking says
	// need is what this pool must have: the request's requirements with the pool's defaults filled in.
	need  *Requirements
	now   time.Time
	unmet []Unmet

	// What the pool would give.
	region  string
	size    adapters.Resources
	gpu     GPU
	cost    *Cost
	values  figures
	figures []Figure // for the record
}

// Unmet is one requirement that a pool does not meet.
type Unmet struct {
	Requirement string `json:"requirement"`
	Wanted      string `json:"wanted,omitempty"`
	Has         string `json:"has,omitempty"`
	// Field is the field of the create from which the requirement follows; empty: it was stated as one.
	Field string `json:"field,omitempty"`
	// Passing says that it may be met at another time.
	Passing bool `json:"passing,omitempty"`
}

// Names of what a pool can lack beside the keys of the grammar.
const (
	UnmetTemplate    = "template"
	UnmetSource      = "source"
	UnmetDraining    = "draining"
	UnmetHealthy     = "healthy"
	UnmetBreaker     = "breaker"
	UnmetResting     = "resting"
	UnmetConcurrency = "concurrency"
	UnmetSize        = "size"
)

// lack notes an unmet requirement.
func (c *candidate) lack(requirement, wanted, has string) {
	c.unmet = append(c.unmet, Unmet{Requirement: requirement, Wanted: wanted, Has: has, Field: c.fields[requirement]})
}

// notNow notes what may be met at another time.
func (c *candidate) notNow(requirement, wanted, has string) {
	c.unmet = append(c.unmet, Unmet{Requirement: requirement, Wanted: wanted, Has: has, Passing: true})
}

// never reports whether the pool can serve the request at no time.
func (c *candidate) never() bool {
	return slices.ContainsFunc(c.unmet, func(u Unmet) bool { return !u.Passing })
}

// candidates puts the pools in their order and says which are within the destination. A name that stands for
// nothing, a pool that is named twice and a destination without pools are errors.
//
// With a provider, its pools come first and then the fallbacks in their order, nothing else. Without one, the
// fallbacks come first and then all other pools. pools allows only those that it lists, in its order.
func candidates(r Requirements, offers []Offer, now time.Time) ([]*candidate, error) {
	destination := r.Fallback
	if r.Provider != "" {
		destination = append([]string{r.Provider}, r.Fallback...)
	}
	if err := knownPlaces(append(slices.Clone(destination), r.Pools...), offers); err != nil {
		return nil, err
	}
	room := make([]candidate, len(offers)) // one allocation for all: a decision is on the way of every create
	all := make([]*candidate, len(offers))
	within := false
	for i := range offers {
		c := &room[i]
		c.offer, c.position, c.now = &offers[i], i, now
		at := slices.Index(r.Pools, c.offer.Pool.Name)
		if at >= 0 {
			c.position = at
		}
		tier, err := tierOf(&c.offer.Pool, destination)
		if err != nil {
			return nil, err
		}
		c.tier = tier
		within = within || (r.Provider == "" || tier < len(destination)) && (len(r.Pools) == 0 || at >= 0)
		all[i] = c
	}
	if !within && len(offers) > 0 {
		return nil, invalid("provider=%s with fallback %s and pools=%s contradict: no pool is in both", r.Provider, listed(r.Fallback), strings.Join(r.Pools, ","))
	}
	slices.SortStableFunc(all, func(a, b *candidate) int {
		if a.tier != b.tier {
			return a.tier - b.tier
		}
		return a.position - b.position
	})
	return all, nil
}

// tierOf returns the place of a pool in a destination; its length for a pool that is not in it.
func tierOf(p *Pool, destination []string) (int, error) {
	tier := len(destination)
	for i, place := range destination {
		switch {
		case place != p.Name && place != p.Provider:
		case tier < len(destination):
			return 0, invalid("the destination names pool %s twice, as %s and as %s: nothing is tried twice", p.Name, destination[tier], place)
		default:
			tier = i
		}
	}
	return tier, nil
}

// CheckDestination returns an error when requirements of the configuration name a pool or provider that is not
// there, name one twice, or leave none.
func CheckDestination(r Requirements, pools []Pool) error {
	offers := make([]Offer, len(pools))
	for i := range pools {
		offers[i].Pool = pools[i]
	}
	_, err := candidates(r, offers, time.Time{})
	return err
}

func knownPlaces(places []string, offers []Offer) error {
	for _, place := range places {
		if !slices.ContainsFunc(offers, func(o Offer) bool { return o.Pool.Name == place || o.Pool.Provider == place }) {
			var names []string
			for _, o := range offers {
				names = append(names, o.Pool.Name)
			}
			return invalid("there is no pool or provider %s: the pools are %s", place, listed(names))
		}
	}
	return nil
}
