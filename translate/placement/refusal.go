package placement

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// CodeNoEligibleProvider is the error_code of a create that no pool could serve.
const CodeNoEligibleProvider = "no_eligible_provider"

// Refusal is the error of a create that no pool could serve: an *adapters.Error that is found with errors.As,
// and what each pool lacked.
type Refusal struct {
	Cause    *adapters.Error
	Attempts []Attempted
}

// Attempted is one pool in a refusal, as the answer's details list it.
type Attempted struct {
	Provider string `json:"provider"`
	Pool     string `json:"pool"`
	// UnmetRequirements are the names of what the pool lacked; Unmet says more about each.
	UnmetRequirements []string `json:"unmet_requirements"`
	Unmet             []Unmet  `json:"unmet,omitempty"`
	// Kind and Message say how a try failed; empty: the pool was not tried.
	Kind    adapters.Kind `json:"kind,omitempty"`
	Message string        `json:"message,omitempty"`
}

// Details is what stands under details in the body of the answer.
type Details struct {
	Attempts []Attempted `json:"attempts"`
}

// Error names what was missing.
func (r *Refusal) Error() string { return r.Cause.Message }

// Unwrap returns the error with its kind.
func (r *Refusal) Unwrap() error { return r.Cause }

// Details returns the answer's details.
func (r *Refusal) Details() Details { return Details{r.Attempts} }

// refuse makes the error for a decision that leaves no pool. It is KindNotFound when no pool within the
// destination has the template; KindRateLimited when only rate limits are in the way; KindCapacity when
// another time may do; else KindUnsupported: no pool could ever serve the request.
func refuse(d Decision, all []*candidate, now time.Time) error {
	if noTemplate(all) {
		return adapters.Errorf(adapters.KindNotFound, "template %s is not there in any pool", quote(d.Template))
	}
	r := &Refusal{Attempts: d.attempted()}
	passing, limited, soonest := false, true, time.Duration(0)
	for _, c := range all {
		if c.never() {
			continue
		}
		passing = true
		rests := c.offer.Live.RestUntil.Sub(now)
		limited = limited && len(c.unmet) == 1 && c.unmet[0].Requirement == UnmetResting && c.offer.Live.RestKind == adapters.KindRateLimited
		if soonest == 0 || rests < soonest {
			soonest = rests
		}
	}
	missing := missing(r.Attempts)
	switch {
	case !passing:
		r.Cause = adapters.Errorf(adapters.KindUnsupported, "no pool can serve this sandbox: %s. Ask for less, or configure a pool that has it", missing)
	case limited:
		r.Cause = adapters.Errorf(adapters.KindRateLimited, "every pool that could serve this sandbox is rate-limited: try again later (%s)", missing)
		r.Cause.RetryAfter = soonest
	default:
		r.Cause = adapters.Errorf(adapters.KindCapacity, "no pool can serve this sandbox at the moment: %s. Try again later", missing)
	}
	r.Cause.Code = CodeNoEligibleProvider
	return r
}

// noTemplate reports whether the template's name alone keeps every pool of the destination out.
func noTemplate(all []*candidate) bool {
	none := len(all) > 0
	for _, c := range all {
		none = none && slices.ContainsFunc(c.unmet, func(u Unmet) bool { return u.Requirement == UnmetTemplate })
	}
	return none
}

// Exhausted makes the error for a decision all of whose attempts failed. Its kind is not_found, unsupported or
// declined only when no other time could do better; 429 only when every attempt and every other pool was
// rate-limited.
func (d Decision) Exhausted() error {
	r := &Refusal{Attempts: d.attempted()}
	kind, retry := adapters.KindUnsupported, time.Duration(0)
	limited := len(d.Attempts) > 0
	for _, a := range d.Attempts {
		limited = limited && a.Kind == adapters.KindRateLimited
		if after := time.Duration(a.RetryAfter); after > 0 && (retry == 0 || after < retry) {
			retry = after
		}
		kind = worse(kind, a.Kind)
	}
	for _, c := range d.Candidates {
		if c.Place == 0 && !slices.ContainsFunc(c.Unmet, func(u Unmet) bool { return !u.Passing }) {
			limited = limited && c.Live.RestKind == adapters.KindRateLimited
			kind = worse(kind, adapters.KindCapacity)
		}
	}
	switch gone := !slices.ContainsFunc(d.Attempts, func(a Attempt) bool { return a.Kind != adapters.KindNotFound }); {
	case limited:
		kind = adapters.KindRateLimited
	case gone && kind == adapters.KindUnsupported:
		kind = adapters.KindNotFound
	}
	r.Cause = adapters.Errorf(kind, "no pool could make this sandbox: %s", missing(r.Attempts))
	r.Cause.Code = CodeNoEligibleProvider
	if kind == adapters.KindRateLimited {
		r.Cause.RetryAfter = retry
	}
	return r
}

// worse keeps the kind that says most about whether another time may do.
func worse(a, b adapters.Kind) adapters.Kind {
	order := []adapters.Kind{adapters.KindUnsupported, adapters.KindCredentials, adapters.KindQuota, adapters.KindUnavailable, adapters.KindCapacity}
	rank := func(k adapters.Kind) int {
		switch k {
		case adapters.KindRateLimited, FailedPostCheck:
			k = adapters.KindCapacity
		case adapters.KindExists, adapters.KindUnknownOutcome:
			k = adapters.KindUnavailable
		}
		return slices.Index(order, k)
	}
	if rank(b) > rank(a) {
		return order[rank(b)]
	}
	return a
}

// attempted lists every pool: those that were tried first, then those that did not qualify.
func (d Decision) attempted() []Attempted {
	list := []Attempted{}
	for _, a := range d.Attempts {
		list = append(list, Attempted{Provider: a.Provider, Pool: a.Pool, UnmetRequirements: unmetNames(a.Unmet), Unmet: a.Unmet, Kind: a.Kind, Message: a.Message})
	}
	for _, c := range d.Candidates {
		if c.Place == 0 {
			list = append(list, Attempted{Provider: c.Provider, Pool: c.Pool, UnmetRequirements: unmetNames(c.Unmet), Unmet: c.Unmet})
		}
	}
	return list
}

// unmetNames lists each name once.
func unmetNames(unmet []Unmet) []string {
	names := []string{}
	for _, u := range unmet {
		if !contains(names, u.Requirement) {
			names = append(names, u.Requirement)
		}
	}
	return names
}

// missing puts what every pool lacked into one sentence, for people who see only the message. Pools that the
// destination leaves out are named only when there is nothing else to say.
func missing(attempts []Attempted) string {
	const most = 6
	var says []string
	outside := 0
	for _, a := range attempts {
		switch {
		case a.Kind != "" && a.Kind != FailedPostCheck:
			says = append(says, fmt.Sprintf("%s: %s (%s)", a.Pool, a.Message, a.Kind))
		case contains(a.UnmetRequirements, "pools") || contains(a.UnmetRequirements, "provider"):
			outside++
		default:
			says = append(says, Why(a.Pool, a.Unmet))
		}
	}
	if more := len(says) - most; more > 0 {
		says = append(says[:most], fmt.Sprintf("and %d more pools", more))
	}
	if outside > 0 {
		says = append(says, fmt.Sprintf("%d pools are outside of the destination", outside))
	}
	if len(says) == 0 {
		return "no pool is configured"
	}
	return strings.Join(says, "; ")
}
