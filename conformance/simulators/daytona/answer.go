package daytona

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"
)

// failure is an answer that is an error. Code and Source are set by the daemon only.
type failure struct {
	Status  int
	Message string
	Code    string
	Header  http.Header
}

// Error is the message.
func (f *failure) Error() string { return f.Message }

func notFound(message string) *failure {
	return &failure{Status: http.StatusNotFound, Message: message}
}
func invalid(message string) *failure {
	return &failure{Status: http.StatusBadRequest, Message: message}
}
func conflict(message string) *failure {
	return &failure{Status: http.StatusConflict, Message: message}
}
func unsupported(message string) *failure {
	return &failure{Status: http.StatusUnprocessableEntity, Message: message}
}

// ofDaemon makes an error that the daemon in the sandbox answers.
func ofDaemon(status int, code, message string) *failure {
	return &failure{Status: status, Code: code, Message: message}
}

// refuse answers with an error, in the words of the API or of the daemon.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	var f *failure
	if !errors.As(err, &f) {
		f = &failure{Status: http.StatusInternalServerError, Message: err.Error()}
	}
	body := map[string]any{
		"path": r.URL.Path, "timestamp": time.Now().UTC().Format(time.RFC3339Nano), "statusCode": f.Status,
		"error": http.StatusText(f.Status), "message": f.Message,
	}
	if f.Code != "" {
		body["code"], body["method"], body["source"] = f.Code, r.Method, "DAYTONA_DAEMON"
	}
	for name, values := range f.Header {
		w.Header()[name] = values
	}
	answer(w, f.Status, body)
}

// answer writes JSON; nothing when there is no body.
func answer(w http.ResponseWriter, status int, body any) {
	if body == nil {
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// maxBody bounds a request that is JSON, in bytes.
const maxBody = 4 << 20

// read decodes a request; an empty body is the zero value.
func read(r *http.Request, into any) error {
	err := json.NewDecoder(io.LimitReader(r.Body, maxBody)).Decode(into)
	if err != nil && !errors.Is(err, io.EOF) {
		return invalid("Bad Request: " + err.Error())
	}
	return nil
}

// reply is the successful outcome of an operation.
type reply struct {
	status int
	body   any
}

func ok(body any) (reply, error) { return reply{http.StatusOK, body}, nil }
