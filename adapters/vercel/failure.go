package vercel

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

// maxMessage bounds what is repeated of the vendor's message.
const maxMessage = 300

// The codes that the vendor gives to errors.
const (
	codeStopped         = "sandbox_stopped"
	codeStopping        = "sandbox_stopping"
	codeSnapshotting    = "sandbox_snapshotting"
	codeSnapshotMissing = "snapshot_not_found"
	codeTimeout         = "sandbox_timeout_invalid"
)

// apiError is what the vendor said, kept as the cause of our error.
type apiError struct {
	status        int
	code, message string
}

func (e *apiError) Error() string {
	return "Vercel answered " + strconv.Itoa(e.status) + " " + e.code + ": " + e.message
}

// coded reports whether an error is the vendor's of this code.
func coded(err error, codes ...string) bool {
	var e *apiError
	if !errors.As(err, &e) {
		return false
	}
	for _, code := range codes {
		if e.code == code {
			return true
		}
	}
	return false
}

// failure classifies an answer that is an error. makes says that the call was to make something.
func failure(answer *http.Response, makes bool) error {
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	said := &apiError{status: answer.StatusCode}
	var body struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	plain := json.Unmarshal(text, &body) == nil && body.Error.Code != ""
	said.code, said.message = body.Error.Code, clip(body.Error.Message)
	kind := kindOf(said, plain, makes)
	if !plain && strangeAnswer(answer.StatusCode) {
		return vendor.Misread(makes, said, "it is "+answer.Status+", and not as the API says so")
	}
	err := &adapters.Error{Kind: kind, Message: words(kind, said), Err: said}
	if kind == adapters.KindRateLimited {
		if seconds, parseErr := strconv.Atoi(answer.Header.Get("Retry-After")); parseErr == nil && seconds >= 0 {
			err.RetryAfter = time.Duration(seconds) * time.Second
		}
	}
	return err
}

// strangeAnswer reports whether an error that is not the API's own is not understood. A proxy that cannot reach the API
// (5xx), and one that refuses, are.
func strangeAnswer(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return false
	}
	return status < http.StatusInternalServerError
}

func clip(text string) string {
	if len(text) > maxMessage {
		return strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return text
}

// kindOf is the map of errors. Only an answer that is plainly the vendor's own, and not that of a proxy on the way,
// proves that nothing was made.
func kindOf(said *apiError, plain, makes bool) adapters.Kind {
	unknown := adapters.KindUnavailable
	if makes {
		unknown = adapters.KindUnknownOutcome
	}
	message := strings.ToLower(said.message)
	switch status := said.status; {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return adapters.KindCredentials
	case status == http.StatusTooManyRequests && strings.Contains(message, "concurrent"):
		return adapters.KindQuota
	case status == http.StatusTooManyRequests:
		return adapters.KindRateLimited
	case !plain:
		return unknown
	case status == http.StatusPaymentRequired:
		return adapters.KindQuota
	case status == http.StatusNotFound, status == http.StatusGone:
		return adapters.KindNotFound
	case status == http.StatusConflict, status == http.StatusUnprocessableEntity:
		return adapters.KindPrecondition
	case status == http.StatusServiceUnavailable && strings.Contains(message, "capacity"):
		return adapters.KindCapacity
	case status/100 == 4:
		return adapters.KindInvalid
	}
	return unknown
}

// words is the message for the user. What is wrong with our account there is for the operator alone.
func words(kind adapters.Kind, said *apiError) string {
	switch {
	case kind == adapters.KindCredentials:
		return "Vercel refuses the access token, team or project that the pool is configured with"
	case kind == adapters.KindQuota:
		return "the Vercel account of the pool is used up"
	case said.message == "":
		return "Vercel answered " + strconv.Itoa(said.status)
	}
	return "Vercel says: " + said.message
}

func gone(boxID string) error {
	return adapters.Errorf(adapters.KindNotFound, "there is no sandbox %s", boxID)
}

// isGone reports whether an error says that there is no such thing.
func isGone(err error) bool { return err != nil && adapters.KindOf(err) == adapters.KindNotFound }
