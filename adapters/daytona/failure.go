package daytona

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// fault is the body of an error, of the API or of the daemon in a sandbox.
type fault struct {
	StatusCode int    `json:"statusCode"`
	Message    words  `json:"message"`
	Code       string `json:"code"`
	Source     string `json:"source"`
}

// words is a message, which may be several.
type words string

// UnmarshalJSON reads a text, or a list of them; anything else is no message.
func (w *words) UnmarshalJSON(text []byte) error {
	var one string
	var many []string
	if json.Unmarshal(text, &one) == nil {
		*w = words(one)
	} else if json.Unmarshal(text, &many) == nil {
		*w = words(strings.Join(many, "; "))
	}
	return nil
}

// row is one line of the map of errors. The API has one status for a lack of room, a used up account and a wrong
// request: only their texts tell them apart. The texts are those of v0.190; other servers may word them differently,
// and then the last row of a status holds.
type row struct {
	status int
	text   *regexp.Regexp // of the message or the code; nil: any
	kind   adapters.Kind
}

func match(text string) *regexp.Regexp { return regexp.MustCompile("(?i)" + text) }

// rows is the map of errors, of which the first line that fits decides.
func rows() []row {
	return []row{
		{http.StatusBadRequest, match(`no (available )?runners?`), adapters.KindCapacity},
		{http.StatusBadRequest, match(`total \w+ limit exceeded|quota exceeded`), adapters.KindQuota},
		{http.StatusBadRequest, match(`exceeds? (the )?maximum allowed per sandbox`), adapters.KindUnsupported},
		{http.StatusBadRequest, match(`is the sandbox started`), adapters.KindPrecondition},
		{http.StatusBadRequest, match(`not in a state that allows|sandbox is not started|must be (started|stopped)`), adapters.KindPrecondition},
		{http.StatusBadRequest, match(`snapshot .* (not found|is (inactive|error|removing|pending|pulling|building))`), adapters.KindNotFound},
		{http.StatusBadRequest, nil, adapters.KindInvalid},
		{http.StatusUnauthorized, nil, adapters.KindCredentials},
		{http.StatusPaymentRequired, nil, adapters.KindQuota},
		{http.StatusForbidden, match(`suspended|payment|billing`), adapters.KindQuota},
		{http.StatusForbidden, match(`region .* not available`), adapters.KindUnsupported},
		{http.StatusForbidden, nil, adapters.KindCredentials},
		{http.StatusNotFound, noCall, adapters.KindUnavailable}, // there is no such call, which says nothing of a sandbox
		{http.StatusNotFound, nil, adapters.KindNotFound},
		{http.StatusRequestTimeout, match(`PROCESS_EXECUTION_TIMEOUT`), adapters.KindUnavailable},
		{http.StatusConflict, match(`already exists`), adapters.KindExists},
		{http.StatusConflict, nil, adapters.KindPrecondition},
		{http.StatusGone, nil, adapters.KindNotFound},
		{http.StatusUnprocessableEntity, nil, adapters.KindUnsupported},
		{http.StatusTooManyRequests, nil, adapters.KindRateLimited},
	}
}

// errChanging is the cause of a refusal because the sandbox is changing its state, errNotStarted because it has not
// come to the started one.
var (
	errChanging   = errors.New("the state changes")
	errNotStarted = errors.New("the sandbox is not started")
)

// changing reports whether a call should be made again in a moment.
func changing(err error) bool { return errors.Is(err, errChanging) }

// failure classifies an answer that is an error. makes says that the call was to make something.
func failure(answer *http.Response, makes bool) error {
	var f fault
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	ours := json.Unmarshal(text, &f) == nil && f.StatusCode != 0
	kind := kindOf(answer.StatusCode, f, ours, makes)
	if strange(answer.StatusCode, f, ours) {
		return adapters.Misunderstood(kind, nil, "Daytona gave no answer that can be read: it is "+answer.Status+", and not of a call that the API has")
	}
	cause := errors.New(answer.Status + " " + f.Code)
	switch {
	case answer.StatusCode == http.StatusConflict && kind == adapters.KindPrecondition:
		cause = errChanging
	case kind == adapters.KindPrecondition && rows()[3].text.MatchString(string(f.Message)):
		cause = errNotStarted
	}
	err := &adapters.Error{Kind: kind, Message: say(kind, answer.Status, string(f.Message)), Err: cause}
	if kind == adapters.KindRateLimited {
		err.RetryAfter = retryAfter(answer.Header)
	}
	return err
}

// kindOf finds the row. Only an answer that is plainly the server's own, which names its status in its body, proves
// that nothing was made or that something is not there. A proxy on the way can say only that it refuses to pass a
// request on.
func kindOf(status int, f fault, ours, makes bool) adapters.Kind {
	unknown := adapters.KindUnavailable
	if makes {
		unknown = adapters.KindUnknownOutcome
	}
	if !ours && !refuses(status) {
		return unknown
	}
	for _, one := range rows() {
		if one.status == status && (one.text == nil || one.text.MatchString(string(f.Message)) || one.text.MatchString(f.Code)) {
			return one.kind
		}
	}
	if status/100 == 4 {
		return adapters.KindInvalid
	}
	return unknown
}

// noCall is what the API says of a path that it does not have.
var noCall = match(`^cannot [a-z]+ /`)

// strange reports whether an error is not understood. A proxy that cannot reach the API (5xx) and one that refuses are
// understood; one that answers anything else in the place of the API is not, and neither is an API that does not have
// the call.
func strange(status int, f fault, ours bool) bool {
	if ours {
		return status == http.StatusNotFound && noCall.MatchString(string(f.Message))
	}
	return status < http.StatusInternalServerError && !refuses(status)
}

// refuses reports whether a status means that a request was not let through, whoever says it.
func refuses(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusTooManyRequests
}

// unlisted is the error of a list: that there is no list is no proof that nothing is in it.
func unlisted(err error) error {
	if err != nil && adapters.KindOf(err) == adapters.KindNotFound {
		return adapters.Wrap(adapters.KindUnavailable, err, "Daytona does not list what there is. "+err.Error())
	}
	return err
}

// retryAfter is how long to wait: the longest of those that the throttlers name.
func retryAfter(header http.Header) time.Duration {
	longest := time.Duration(0)
	for name, values := range header {
		if !strings.HasPrefix(strings.ToLower(name), "retry-after") {
			continue
		}
		if seconds, err := strconv.Atoi(values[0]); err == nil && seconds >= 0 {
			longest = max(longest, time.Duration(seconds)*time.Second)
		}
	}
	return longest
}

// say is the message for the user. What is wrong with our account there is for the operator alone.
func say(kind adapters.Kind, status, message string) string {
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	switch kind {
	case adapters.KindCredentials:
		return "Daytona refuses the API key that the pool is configured with, or what it may do"
	case adapters.KindQuota:
		return "the Daytona account of the pool is used up"
	}
	if message == "" {
		return "Daytona answered " + status
	}
	return "Daytona says: " + message
}

// endedAs classifies a sandbox that came to the state error or build_failed: the API tells no more than a text.
func endedAs(one sandbox) error {
	kind := adapters.KindUnavailable
	switch {
	case match(`no (available )?runners?`).MatchString(one.ErrorReason):
		kind = adapters.KindCapacity
	case one.State == stateBuildFailed || match(`pull|image|manifest|dockerfile`).MatchString(one.ErrorReason):
		kind = adapters.KindUnsupported
	}
	return adapters.Errorf(kind, "the sandbox came to the state %s: %s", one.State, say("", one.State, one.ErrorReason))
}
