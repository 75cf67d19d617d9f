package translate

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/translate/placement"
)

// Machine-readable codes of E2B's open set, and our own for a field that is not supported.
const (
	CodeUnsupportedField = "unsupported_field"
	CodeCapacity         = "sandbox_capacity_unavailable"
	CodeNeverFits        = "sandbox_no_compatible_node"
	CodeTimeout          = "sandbox_placement_timeout"
	CodeInternal         = "internal_server_error"
)

// Retry is what the Should-Retry header says. Newest SDKs repeat a call that got 429, 502, 503 or 504
// without that header by themselves, so every such answer carries it.
type Retry string

// The values; RetryUnsaid leaves the header out.
const (
	RetryUnsaid Retry = ""
	RetryYes    Retry = "true"
	RetryNo     Retry = "false"
)

// Failure is an answer of the control plane that is an error. It is an error itself, so that the few answers
// which no kind of error stands for (401, 405, 413, …) travel the same way as all others.
type Failure struct {
	Status  int
	Code    string // error_code; empty: none
	Message string
	// RetryAfter is sent in whole seconds, rounded up; 0: not sent.
	RetryAfter time.Duration
	Retry      Retry
	// Details are further facts for programs; nil: none.
	Details map[string]any
	// Err is the cause, for the log only.
	Err error
}

// Error returns the message.
func (f *Failure) Error() string { return f.Message }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Body returns the failure as the wire's Error object.
func (f *Failure) Body() openapi.Error {
	return openapi.Error{Code: int32(f.Status), Message: f.Message, ErrorCode: optional(f.Code), Details: f.Details}
}

// EnvdFailure is an answer of the data plane on envd's routes.
type EnvdFailure struct {
	// Gone says that the sandbox is not there: the answer is the gateway's own 502, not an error of Connect.
	Gone bool
	// Status is the HTTP status of a unary call, Code the Connect code.
	Status  int
	Code    string
	Message string
}

// outcome is one row of the table: what a kind of error means on each side.
type outcome struct {
	status     int
	code       string
	retry      Retry
	envdStatus int
	envdCode   string
}

// outcomeOf is the one table from kinds to answers (architecture, section 4).
//
// Should-Retry is yes only where waiting a moment may help and nothing can have been made: a team's own limit
// or an operator's fault does not go away within seconds, and after an unknown outcome a repetition could
// make a second sandbox.
//
// A provider that cannot be reached is never 502 nor Connect's "unavailable" on envd's routes: SDKs read both
// as "the sandbox is gone".
func outcomeOf(kind adapters.Kind) outcome {
	switch kind {
	case adapters.KindInvalid:
		return outcome{400, "", RetryUnsaid, 400, "invalid_argument"}
	case adapters.KindNotFound:
		return outcome{404, "", RetryUnsaid, 502, "unavailable"}
	case adapters.KindExists:
		return outcome{409, "", RetryUnsaid, 409, "already_exists"}
	case adapters.KindPrecondition:
		return outcome{409, "", RetryUnsaid, 400, "failed_precondition"}
	case adapters.KindCapacity:
		return outcome{503, CodeCapacity, RetryYes, 500, "internal"}
	case adapters.KindRateLimited:
		return outcome{429, "", RetryYes, 429, "resource_exhausted"}
	case adapters.KindTeamLimit:
		return outcome{429, "", RetryNo, 429, "resource_exhausted"}
	case adapters.KindQuota:
		return outcome{503, CodeCapacity, RetryNo, 500, "internal"}
	case adapters.KindUnavailable:
		return outcome{503, "", RetryYes, 500, "internal"}
	case adapters.KindCredentials:
		return outcome{503, "", RetryNo, 500, "internal"}
	case adapters.KindUnsupported, adapters.KindDeclined:
		return outcome{400, "", RetryUnsaid, 501, "unimplemented"}
	case adapters.KindUnknownOutcome:
		return outcome{504, CodeTimeout, RetryNo, 500, "internal"}
	}
	return outcome{500, CodeInternal, RetryUnsaid, 500, "internal"}
}

// FailureOf returns the control plane's answer to any error.
func FailureOf(err error) *Failure {
	var failure *Failure
	if errors.As(err, &failure) {
		return failure
	}
	known := classified(err)
	row := outcomeOf(known.Kind)
	failure = &Failure{
		Status: row.status, Code: row.code, Retry: row.retry,
		Message: known.Message, RetryAfter: known.RetryAfter, Err: known.Err,
	}
	if known.Code != "" {
		failure.Code = known.Code
	}
	if failure.Code == CodeNeverFits {
		failure.Retry = RetryNo
	}
	var refusal *placement.Refusal
	if errors.As(err, &refusal) {
		failure.Details = map[string]any{"attempts": refusal.Details().Attempts}
	}
	return failure
}

// EnvdFailureOf returns the data plane's answer to any error.
func EnvdFailureOf(err error) EnvdFailure {
	known := classified(err)
	row := outcomeOf(known.Kind)
	return EnvdFailure{
		Gone:   known.Kind == adapters.KindNotFound,
		Status: row.envdStatus, Code: row.envdCode, Message: known.Message,
	}
}

// classified returns the error with a kind and with a message that may be shown. An ended context is an
// unknown outcome here: whoever could have known more has already said so in an *adapters.Error.
func classified(err error) *adapters.Error {
	var known *adapters.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return adapters.Wrap(adapters.KindUnknownOutcome, err,
			"The call did not end in time and may still take effect: look before you repeat it.")
	}
	return adapters.Wrap(adapters.KindInternal, err, "Isthmus failed at this call: its log has the cause under the request id of this answer.")
}

// invalid is a 400.
func invalid(format string, args ...any) error {
	return adapters.Errorf(adapters.KindInvalid, format, args...)
}

// Unserved is the answer to an operation that this Isthmus does not serve.
func Unserved(operation string) *Failure {
	return &Failure{Status: http.StatusNotImplemented, Retry: RetryUnsaid,
		Message: operation + " is not served by this Isthmus: " + instead(operation)}
}

// instead is what somebody does who cannot have an operation.
func instead(operation string) string {
	name := strings.ToLower(operation)
	switch {
	case strings.Contains(name, "fork"), strings.Contains(name, "checkpoint"):
		return "take a snapshot of the sandbox, where its pool can, and create others from it."
	case strings.Contains(name, "template"), strings.Contains(name, "build"):
		return "templates are made by its operator, with `isthmus images import`. Create sandboxes from one that exists, such as base."
	case strings.Contains(name, "volume"):
		return "there are no volumes. Write files into the sandbox, or fetch them in it over the network."
	case strings.Contains(name, "secret"):
		return "there are no kept secrets. Give them to the sandbox as environment variables when it is created."
	}
	return "its compatibility page lists what is. Do without it, or ask the operator for another place."
}

// optional returns nil for the zero value, so that the key is left out.
func optional[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
