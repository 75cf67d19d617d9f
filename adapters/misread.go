package adapters

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"time"
)

// maxReason bounds Misread.Reason, in bytes.
const maxReason = 300

// Misread is the cause of an error when a provider answered what its adapter does not understand: a field is missing,
// a value is new, the answer is a page, or ends in its middle. What the provider meant is not known then, which is
// neither its refusal nor an outage.
type Misread struct {
	// Reason says what was not understood, in at most 300 bytes, and repeats nothing that may be a secret.
	Reason string
	// Feature is the capability in doubt; empty: nobody has said yet which one was used.
	Feature Feature
	// Err is the cause, for logs only.
	Err error
}

// Error returns the reason.
func (m *Misread) Error() string { return m.Reason }

// Unwrap returns the cause.
func (m *Misread) Unwrap() error { return m.Err }

// Misunderstood makes the error of a kind for an answer that was not understood. The message is for the user, as
// every other, and says what was not understood.
func Misunderstood(kind Kind, cause error, message string) *Error {
	reason := message
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason-len("…")], "") + "…"
	}
	return Wrap(kind, &Misread{Reason: reason, Err: cause}, message)
}

// Vendor is a provider by the name that messages have for it.
type Vendor string

// Misread is the error for an answer that is not understood. makes says that the call was to make something: then it is
// not known whether it did.
func (v Vendor) Misread(makes bool, cause error, what string) *Error {
	if makes {
		return Misunderstood(KindUnknownOutcome, cause, string(v)+" gave no answer that can be read ("+what+"): it may or may not have been done")
	}
	return v.Unread(KindUnavailable, cause, what)
}

// Unread is the error of a kind for an answer that is not understood, where that changes nothing.
func (v Vendor) Unread(kind Kind, cause error, what string) *Error {
	return Misunderstood(kind, cause, string(v)+" gave no answer that can be read: "+what)
}

// MisreadOf returns what was not understood when that is why something failed, else nil.
func MisreadOf(err error) *Misread {
	var misread *Misread
	if errors.As(err, &misread) {
		return misread
	}
	return nil
}

// Touching says of an error which capability was used, when an answer was not understood and nothing nearer to it has
// said so. Every other error is returned as it is.
func Touching(feature Feature, err error) error {
	misread := MisreadOf(err)
	var typed *Error
	known := errors.As(err, &typed)
	switch {
	case misread == nil, known && misread.Feature != "":
		return err
	case !known:
		typed = &Error{Kind: KindUnavailable, Message: misread.Reason}
	}
	touched := *typed
	touched.Err = &Misread{Reason: misread.Reason, Feature: cmp.Or(misread.Feature, feature), Err: err}
	return &touched
}

type overcomeKey struct{}

// Overcome tells whoever watches the create of ctx that an answer was not understood and that the create goes on all the
// same, because what it made was found in another way. Other errors are nothing to tell.
func Overcome(ctx context.Context, err error) {
	if into, watched := ctx.Value(overcomeKey{}).(*atomic.Pointer[Misread]); watched {
		if misread := MisreadOf(err); misread != nil {
			into.Store(misread)
		}
	}
}

// overcoming returns a context whose Overcome is heard.
func overcoming(ctx context.Context) (context.Context, *atomic.Pointer[Misread]) {
	into := &atomic.Pointer[Misread]{}
	return context.WithValue(ctx, overcomeKey{}, into), into
}

// Unreadable says why an answer could not be read as JSON, without repeating anything of it.
func Unreadable(err error) string {
	var value *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	var moment *time.ParseError
	switch {
	case errors.As(err, &value) && value.Field != "":
		kind, _, _ := strings.Cut(value.Value, " ") // of a number its digits follow
		return fmt.Sprintf("its field %s is of the wrong kind, %s", value.Field, kind)
	case errors.As(err, &value):
		return "it is JSON of another form"
	case errors.As(err, &syntax):
		return "it is not JSON"
	case errors.As(err, &moment):
		return "a time in it is none"
	case errors.Is(err, io.EOF):
		return "it is empty"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends in its middle"
	}
	return "it broke off"
}

// IsPage reports whether an answer is a page for people, as a proxy on the way gives, whatever its status.
func IsPage(answer *http.Response) bool {
	return strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html")
}

var plainWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,39}$`)

// Strange repeats a value that a provider has and that is not known, when it is a word and not something that could
// be more than that.
func Strange(value string) string {
	switch {
	case value == "":
		return "none"
	case plainWord.MatchString(value):
		return value
	}
	return "no word"
}
