package api_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPanics(t *testing.T) {
	p := newPlane(t)
	p.fleet.panics = "secret state"
	answer := p.call("GET", "/sandboxes/i1", "", nil)
	require.Equal(t, 500, answer.Code)
	require.NotContains(t, answer.failure(t).Message, "secret")
	require.Contains(t, p.log.String(), "secret state")

	p.fleet.panics = http.ErrAbortHandler
	require.PanicsWithValue(t, http.ErrAbortHandler, func() { p.call("GET", "/sandboxes/i1", "", nil) })
}

func TestUnclassifiedError(t *testing.T) {
	p := newPlane(t)
	p.fleet.fail = errors.New("disk full at /var/x")
	answer := p.call("GET", "/sandboxes/i1", "", map[string]string{"X-Request-Id": "req-7"})
	failure := answer.failure(t)
	require.Equal(t, 500, answer.Code)
	require.Equal(t, "internal_server_error", *failure.ErrorCode)
	require.NotContains(t, failure.Message, "/var/x")
	require.Equal(t, "req-7", answer.Header().Get("X-Request-Id"))
	require.Contains(t, p.log.String(), `"request":"req-7"`)
	require.Contains(t, p.log.String(), "disk full")
}

func TestRequestIDIsReplacedWhenStrange(t *testing.T) {
	p := newPlane(t)
	for _, given := range []string{"", "a b", strings.Repeat("a", 65), "<script>"} {
		id := p.call("GET", "/health", "", map[string]string{"X-Request-Id": given}).Header().Get("X-Request-Id")
		require.Regexp(t, `^[0-9a-f]{16}$`, id)
	}
}

func TestCORS(t *testing.T) {
	p := newPlane(t)
	for _, path := range []string{"/v2/sandboxes", "/sandboxes/i1", "/nothing"} {
		answer := p.call("OPTIONS", path, "", map[string]string{"X-API-Key": "", "Origin": "https://app.example"})
		require.Equal(t, http.StatusNoContent, answer.Code)
		allowed := strings.ToLower(answer.Header().Get("Access-Control-Allow-Headers"))
		for _, name := range []string{"x-api-key", "content-type", "authorization", "idempotency-key", "lang_version", "sdk_runtime", "publisher", "system"} {
			require.Contains(t, allowed, name)
		}
		require.Contains(t, answer.Header().Get("Access-Control-Allow-Methods"), "DELETE")
	}
	for _, path := range []string{"/v2/sandboxes", "/nothing", "/templates"} {
		answer := p.call("GET", path, "", map[string]string{"Origin": "https://app.example"})
		require.Equal(t, "*", answer.Header().Get("Access-Control-Allow-Origin"))
		require.Contains(t, answer.Header().Get("Access-Control-Expose-Headers"), "X-Next-Token")
	}
}

func TestLogHoldsNoSecret(t *testing.T) {
	p := newPlane(t)
	p.call("POST", "/v2/sandboxes", `{"templateID":"base","envVars":{"TOKEN":"hush-1"}}`, nil)
	p.call("GET", "/v2/sandboxes?metadata=user%3Dhush-2", "", nil)
	p.call("GET", "/v2/sandboxes", "", map[string]string{"X-API-Key": "hush-3"})
	require.NotContains(t, p.log.String(), "hush")
	require.NotContains(t, p.log.String(), keyOne[4:])
	require.Contains(t, p.log.String(), `"caller":{"team":"`+teamOne)
}
