package adapters

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Kind is the closed set of ways in which something can fail. An adapter classifies its provider's errors
// into a kind; translate/errors.go alone turns kinds into answers.
type Kind string

// The kinds; what follows from each while creating, for the breaker and on the wire is the table in
// translate/errors.go.
const (
	KindInvalid        Kind = "invalid"         // the request itself is wrong
	KindNotFound       Kind = "not_found"       // no such sandbox, box or template
	KindExists         Kind = "exists"          // a box of this name is there already
	KindPrecondition   Kind = "precondition"    // it is in a state that does not allow this
	KindCapacity       Kind = "capacity"        // no room at the moment
	KindRateLimited    Kind = "rate_limited"    // too many calls; RetryAfter says when
	KindTeamLimit      Kind = "team_limit"      // the tenant's own limit, decided before any pool
	KindQuota          Kind = "quota"           // the pool's account is used up
	KindUnavailable    Kind = "unavailable"     // the provider cannot be reached, nothing was made
	KindCredentials    Kind = "credentials"     // the provider refuses our credentials
	KindUnsupported    Kind = "unsupported"     // this place cannot do it
	KindDeclined       Kind = "declined"        // this place does not want to do it
	KindUnknownOutcome Kind = "unknown_outcome" // it may or may not have happened
	KindInternal       Kind = "internal"        // a bug of ours
)

// Error is the only error type that leaves an adapter or the fleet.
type Error struct {
	Kind Kind
	// Message is for the user: what is wrong and what to do next. It holds no secret and no host path.
	Message string
	// Code is E2B's machine-readable error_code, when there is one.
	Code string
	// RetryAfter is set with KindRateLimited.
	RetryAfter time.Duration
	// Err is the cause, for logs only.
	Err error
}

// Error returns the message, without the cause.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an error of a kind. An error among the arguments under %w becomes the cause.
func Errorf(kind Kind, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Message: err.Error(), Err: errors.Unwrap(err)}
}

// Wrap makes an error of a kind whose cause stays out of the message.
func Wrap(kind Kind, cause error, message string) *Error {
	return &Error{Kind: kind, Message: message, Err: cause}
}

// KindOf returns the kind of an error: that of the *Error in its chain, KindUnavailable for an ended
// context, else KindInternal.
func KindOf(err error) Kind {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Kind
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return KindUnavailable
	}
	return KindInternal
}
