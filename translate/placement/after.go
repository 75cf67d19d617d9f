package placement

import (
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// Step is what an attempt loop does after an attempt that failed.
type Step string

// The steps.
const (
	Next Step = "next" // nothing was made: try the next pool
	Stop Step = "stop" // no other pool would do better: answer the error
	// Reconcile means looking the box up by name, then by label: a box of this attempt is adopted, its absence
	// is proved before the next pool is tried, and what cannot be decided is answered as KindUnknownOutcome.
	Reconcile Step = "reconcile"
)

// Mark is what a pool's breaker learns.
type Mark string

// The marks.
const (
	MarkNone    Mark = "none"    // says nothing about the pool
	MarkFailure Mark = "failure" // counts against it
	MarkOpen    Mark = "open"    // no create until the configuration is loaded again
)

// Consequence is one row of the table of what follows from a failed attempt.
type Consequence struct {
	Step Step `json:"step"`
	Mark Mark `json:"mark"`
	// Rest says that the pool is left alone: for as long as the provider asks, or RestFor where it does not
	// say or the row does not listen to it.
	Rest    bool          `json:"rest,omitempty"`
	RestFor time.Duration `json:"restFor,omitempty"`
}

// FailedPostCheck is the outcome of an attempt whose sandbox fell short of what was required and was
// destroyed. It stands beside the kinds of errors and is none of an adapter's.
const FailedPostCheck adapters.Kind = "failed_post_check"

// How long a pool rests: after a rate limit whose provider names no time, at most after one that does, and
// after its account's quota was used up.
const (
	restRateLimited = 5 * time.Second
	restLongest     = 10 * time.Minute
	restQuota       = time.Minute
)

// After returns what follows from a failed attempt: the table of the adapter contract. A kind that is not in it
// stops, like a bug of ours.
func After(kind adapters.Kind) Consequence {
	switch kind {
	case adapters.KindInvalid, adapters.KindPrecondition, adapters.KindTeamLimit:
		return Consequence{Step: Stop, Mark: MarkNone}
	case adapters.KindNotFound, adapters.KindUnsupported, adapters.KindDeclined:
		return Consequence{Step: Next, Mark: MarkNone}
	case adapters.KindExists:
		return Consequence{Step: Reconcile, Mark: MarkNone}
	case adapters.KindCapacity, adapters.KindUnavailable, FailedPostCheck:
		return Consequence{Step: Next, Mark: MarkFailure}
	case adapters.KindRateLimited:
		return Consequence{Step: Next, Mark: MarkNone, Rest: true, RestFor: restRateLimited}
	case adapters.KindQuota:
		return Consequence{Step: Next, Mark: MarkNone, Rest: true, RestFor: restQuota}
	case adapters.KindCredentials:
		return Consequence{Step: Next, Mark: MarkOpen}
	case adapters.KindUnknownOutcome:
		return Consequence{Step: Reconcile, Mark: MarkFailure}
	}
	return Consequence{Step: Stop, Mark: MarkFailure}
}

// Resting returns how long the pool is left alone after an error of which After says that it rests. retryAfter
// is what the provider asked for; 0: nothing.
func (c Consequence) Resting(retryAfter time.Duration) time.Duration {
	switch {
	case !c.Rest:
		return 0
	case retryAfter > 0:
		return min(retryAfter, restLongest)
	}
	return c.RestFor
}
