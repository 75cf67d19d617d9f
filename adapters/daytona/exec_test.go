package daytona

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
)

// following is a program whose stream of output has some frames.
func following(t *testing.T, frames ...[]byte) *program {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return // it is the end of the session that is asked for
		}
		defer func() { _ = ws.CloseNow() }()
		for _, frame := range frames {
			if ws.Write(r.Context(), websocket.MessageBinary, frame) != nil {
				return
			}
		}
		_ = ws.Close(websocket.StatusNormalClosure, "")
	}))
	t.Cleanup(server.Close)
	p, err := New(Config{APIURL: server.URL, Key: func() (string, error) { return "dtn_key", nil }})
	require.NoError(t, err)
	session, err := url.Parse(server.URL + "/process/session/s")
	require.NoError(t, err)
	e := &program{p: p, session: session, command: "c"}
	e.ctx, e.cancel = t.Context(), func() {}
	require.NoError(t, e.follow(t.Context()))
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// TestTheOutputOfAProgramIsBounded has a sandbox send lines and frames without an end: a typed error, and no memory.
func TestTheOutputOfAProgramIsBounded(t *testing.T) {
	sound := []byte("\x01\x01\x01+\naGVsbG8=\n=3\n")
	long := bytes.Repeat([]byte("a"), maxLine)
	for name, frames := range map[string][][]byte{
		"a line without an end": {[]byte("+\n"), long, long, sound},
		"a frame too large":     {[]byte("+\n"), bytes.Repeat([]byte("aGVsbG8=\n"), maxFrame/9+1)},
		"no base64":             {[]byte("+\n!\n")},
		"no exit code":          {[]byte("+\n=x\n")},
		"cut":                   {[]byte("+\naGVsbG8=\n")},
	} {
		t.Run(name, func(t *testing.T) {
			e := following(t, frames...)
			first, err := e.first(t.Context())
			require.NoError(t, err)
			require.Equal(t, "+", first)
			_, err = io.Copy(io.Discard, struct{ io.Reader }{e})
			require.Equal(t, adapters.KindUnavailable, adapters.KindOf(err), "%v", err)
			require.NotNil(t, adapters.MisreadOf(err), "it marks the capability")
		})
	}
	t.Run("a first line without an end", func(t *testing.T) {
		_, err := following(t, long, sound).first(t.Context())
		require.Equal(t, adapters.KindUnavailable, adapters.KindOf(err), "%v", err)
	})
	t.Run("sound", func(t *testing.T) {
		e := following(t, sound[:6], sound[6:])
		_, err := e.first(t.Context())
		require.NoError(t, err)
		out, err := io.ReadAll(struct{ io.Reader }{e})
		require.NoError(t, err)
		require.Equal(t, "hello", string(out))
		code, err := e.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, 3, code)
	})
}
