package placement

import (
	"strings"
	"time"
)

// OpenUntil says until when a breaker is open; a zero time is not known.
func OpenUntil(at time.Time) string {
	if at.IsZero() {
		return "open after failures"
	}
	return "open until " + at.UTC().Format(time.RFC3339) + ", after failures"
}

// Why says in words for what a pool does not qualify: what it lacks, and the state that it is in.
func Why(pool string, unmet []Unmet) string {
	var lacks, states []string
	for _, u := range unmet {
		if state := u.state(pool); state != "" {
			states = append(states, state)
		} else {
			lacks = append(lacks, u.text())
		}
	}
	if len(lacks) > 0 {
		states = append([]string{pool + " lacks " + strings.Join(lacks, ", ")}, states...)
	}
	return strings.Join(states, ", and ")
}

// state says what is in the way when that is no capability but how the pool is doing; empty: it is one.
func (u Unmet) state(pool string) string {
	switch u.Requirement {
	case UnmetDraining:
		return pool + " is draining"
	case UnmetHealthy:
		return pool + " is unhealthy: " + u.Has
	case UnmetBreaker:
		return pool + "'s breaker is " + u.Has
	case UnmetResting:
		return pool + " rests: " + u.Has
	case UnmetConcurrency:
		return pool + " is full: " + u.Has + " sandboxes"
	}
	return ""
}

// text is a requirement with what the pool has of it.
func (u Unmet) text() string {
	word := u.Requirement
	if u.Wanted != "" {
		word += "=" + u.Wanted
	}
	if u.Has != "" {
		word += " (" + u.Has + ")"
	}
	if u.Field != "" {
		word += ", which " + u.Field + " needs"
	}
	return word
}
