package placement

import (
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// Decision is the record of one create: what was required, what each pool lacked, how those that qualify were
// ranked, and what became of the attempts. It holds no secret.
type Decision struct {
	Template     string       `json:"template"`
	Requirements Requirements `json:"requirements"`
	// Rank is the sequence of objectives that was used.
	Rank []string `json:"rank"`
	// Candidates are all pools, those that qualify first and in the order in which they are tried.
	Candidates []Considered `json:"candidates"`
	// Stages and Attempts are added by whoever carries the plan out.
	Stages   []Stage   `json:"stages,omitempty"`
	Attempts []Attempt `json:"attempts,omitempty"`
}

// Considered is one pool in a decision.
type Considered struct {
	Pool     string `json:"pool"`
	Provider string `json:"provider"`
	// Place is where it stands in the order, from 1; 0: it does not qualify, and Unmet says why.
	Place     int     `json:"place,omitempty"`
	Unmet     []Unmet `json:"unmet,omitempty"`
	Isolation string  `json:"isolation,omitempty"`
	// Evidence is verified or provider_reported: how the isolation is known.
	Evidence string             `json:"evidence,omitempty"`
	Region   string             `json:"region,omitempty"`
	Size     adapters.Resources `json:"size"`
	// Figures are those that the ranking looked at. What is not known is left out.
	Figures []Figure `json:"figures,omitempty"`
	Cost    *Cost    `json:"cost,omitempty"`
	Live    Live     `json:"live"`
}

// Names of the stages of a create.
const (
	StageMatch = "match" // filter
	StageRank  = "rank"
	StageTry   = "try"
	StageRun   = "run" // from the first answer of envd on
)

// Stage is one step of a create with its times.
type Stage struct {
	Name  string    `json:"name"`
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended,omitzero"`
}

// Attempt is one try in one pool.
type Attempt struct {
	Pool     string    `json:"pool"`
	Provider string    `json:"provider"`
	ID       string    `json:"id,omitempty"` // the attempt's UUID
	Began    time.Time `json:"began"`
	Ended    time.Time `json:"ended,omitzero"`
	// Kind says how it failed, FailedPostCheck included; empty: it succeeded.
	Kind    adapters.Kind `json:"kind,omitempty"`
	Message string        `json:"message,omitempty"`
	// Unmet is what a sandbox that failed the check after provisioning fell short of.
	Unmet []Unmet `json:"unmet,omitempty"`
	// Seen is what the sandbox was seen to be from inside; nil: it was not looked at.
	Seen *Measured `json:"seen,omitempty"`
	// Next is what followed.
	Next Step `json:"next,omitempty"`
	// RetryAfter is how long the provider asked to be left alone.
	RetryAfter Milliseconds `json:"retryAfterMs,omitempty"`
}

// considered records all pools: those that qualify in their order, then the others.
func considered(all, eligible []*candidate) []Considered {
	record := make([]Considered, 0, len(all))
	for i, c := range eligible {
		record = append(record, c.considered(i+1))
	}
	for _, c := range all {
		if len(c.unmet) > 0 {
			record = append(record, c.considered(0))
		}
	}
	return record
}

func (c *candidate) considered(place int) Considered {
	pool := &c.offer.Pool
	return Considered{Pool: pool.Name, Provider: pool.Provider, Place: place, Unmet: c.unmet,
		Isolation: pool.Isolation.Level, Evidence: pool.Isolation.Evidence(),
		Region: c.region, Size: c.size, Figures: c.figures, Cost: c.cost, Live: c.offer.Live}
}
