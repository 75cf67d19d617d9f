package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/envd"
)

// tell sends one request to a daemon that waits.
func tell(t *testing.T, l net.Listener, method, path, control string, body any) int {
	t.Helper()
	text, err := json.Marshal(body)
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+l.Addr().String()+path, bytes.NewReader(text))
	require.NoError(t, err)
	r.Header.Set(envd.HeaderControl, control)
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}

func listen(t *testing.T) *net.TCPListener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l.(*net.TCPListener)
}

func TestAwaitTakesOneConfigurationFromWhoKnowsTheSecret(t *testing.T) {
	l := listen(t)
	type result struct {
		config envd.Config
		err    error
	}
	done := make(chan result, 1)
	go func() {
		c, err := Await(t.Context(), l, envd.ControlSum("secret"), time.Now().Add(time.Hour))
		done <- result{c, err}
	}()
	config := envd.Config{SandboxID: "one", Transport: "t", Control: "c"}
	for _, control := range []string{"", "wrong", envd.ControlSum("secret")} {
		require.Equal(t, http.StatusServiceUnavailable, tell(t, l, http.MethodPut, envd.RouteConfigure, control, config))
	}
	require.Equal(t, http.StatusServiceUnavailable, tell(t, l, http.MethodGet, "/health", "secret", nil))
	require.Equal(t, http.StatusBadRequest, tell(t, l, http.MethodPut, envd.RouteConfigure, "secret", envd.Config{SandboxID: "no secrets"}))
	require.Equal(t, http.StatusMethodNotAllowed, tell(t, l, http.MethodPost, envd.RouteConfigure, "secret", config))
	later := map[string]time.Time{"deadline": time.Now().Add(2 * time.Hour)}
	require.Equal(t, http.StatusNoContent, tell(t, l, http.MethodPut, envd.RouteDeadline, "secret", later))
	require.Equal(t, http.StatusNoContent, tell(t, l, http.MethodPut, envd.RouteConfigure, "secret", config))
	got := <-done
	require.NoError(t, got.err)
	require.Equal(t, config, got.config)

	// The listener is open: the daemon takes over.
	ctx, stop := context.WithCancel(t.Context())
	d, err := New(got.config, Options{StateDir: t.TempDir()})
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- d.Serve(ctx, l, nil) }()
	require.Equal(t, http.StatusNoContent, tell(t, l, http.MethodGet, "/health", "c", nil))
	require.Equal(t, http.StatusNotFound, tell(t, l, http.MethodPut, envd.RouteConfigure, "c", config))
	stop()
	require.NoError(t, <-ended)
}

func TestAwaitEndsAtItsDeadline(t *testing.T) {
	l := listen(t)
	_, err := Await(t.Context(), l, envd.ControlSum("secret"), time.Now().Add(time.Millisecond))
	require.ErrorIs(t, err, ErrDeadline)
}
