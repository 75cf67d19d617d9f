//go:build linux

package vercel

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"
)

// failure is an answer that is an error.
type failure struct {
	status        int
	code, message string
	retryAfter    time.Duration
	more          map[string]any
}

func fail(status int, code, message string) *failure {
	return &failure{status: status, code: code, message: message}
}

// Error returns the message.
func (f *failure) Error() string { return f.message }

// The errors that several operations have.
func badRequest(message string) error { return fail(http.StatusBadRequest, "bad_request", message) }
func notFound(what string) error {
	return fail(http.StatusNotFound, "not_found", what+" was not found.")
}
func stopped() error {
	return fail(http.StatusGone, "sandbox_stopped", "The sandbox is stopped and accepts no commands.")
}

func writeFailure(w http.ResponseWriter, err error) {
	var f *failure
	if !errors.As(err, &f) {
		f = fail(http.StatusInternalServerError, "internal_server_error", err.Error())
	}
	if f.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(f.retryAfter.Seconds()))))
	}
	body := map[string]any{"code": f.code, "message": f.message}
	for name, value := range f.more {
		body[name] = value
	}
	writeJSON(w, f.status, map[string]any{"error": body})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
