package e2b

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// fault is the body of an error.
type fault struct {
	Code      int    `json:"code"`
	Message   string `json:"message"`
	ErrorCode string `json:"error_code"`
}

// maxMessage bounds what is repeated of a server's message.
const maxMessage = 300

// failure classifies an answer that is an error. makes says that the call was to make something.
func failure(answer *http.Response, makes bool) error {
	var f fault
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	ours := json.Unmarshal(text, &f) == nil && f.Code != 0
	if strange(answer.StatusCode, text) {
		return misread(makes, nil, "it is "+answer.Status+", and not as the protocol says so")
	}
	kind := kindOf(answer, f, ours, makes)
	err := &adapters.Error{Kind: kind, Message: words(kind, answer.Status, f.Message), Err: errors.New(answer.Status + " " + f.ErrorCode)}
	if kind == adapters.KindRateLimited {
		if seconds, parseErr := strconv.Atoi(answer.Header.Get("Retry-After")); parseErr == nil && seconds >= 0 {
			err.RetryAfter = time.Duration(seconds) * time.Second
		}
	}
	return err
}

// kindOf is the map of errors. Only an answer that is plainly the server's own, and not that of a proxy on the
// way, proves that nothing was made.
func kindOf(answer *http.Response, f fault, ours, makes bool) adapters.Kind {
	unknown := adapters.KindUnavailable
	if makes {
		unknown = adapters.KindUnknownOutcome
	}
	switch status := answer.StatusCode; {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return adapters.KindCredentials
	case status == http.StatusBadRequest && (f.ErrorCode == "unsupported_field" || f.ErrorCode == "sandbox_no_compatible_node"):
		return adapters.KindUnsupported
	case status == http.StatusBadRequest:
		return adapters.KindInvalid
	case status == http.StatusNotFound:
		return adapters.KindNotFound
	case status == http.StatusConflict:
		return adapters.KindPrecondition
	case status == http.StatusTooManyRequests:
		return limited(answer, f)
	case status == http.StatusNotImplemented:
		return adapters.KindUnsupported
	case status == http.StatusServiceUnavailable && ours:
		return adapters.KindCapacity
	}
	return unknown
}

// limited tells the account's own limit, which waiting a moment does not help, from too many calls.
func limited(answer *http.Response, f fault) adapters.Kind {
	if strings.Contains(f.Message, "maximum number of concurrent") || answer.Header.Get("Should-Retry") == "false" {
		return adapters.KindQuota
	}
	return adapters.KindRateLimited
}

// words is the message for the user. What is wrong with our account there is for the operator alone.
func words(kind adapters.Kind, status, message string) string {
	if len(message) > maxMessage {
		message = message[:maxMessage] + "…"
	}
	switch kind {
	case adapters.KindCredentials:
		return "the server of the pool refuses the API key that it is configured with"
	case adapters.KindQuota:
		return "the account of the pool is used up"
	}
	if message == "" {
		return "the server of the pool answered " + status
	}
	return "the server of the pool says: " + message
}
