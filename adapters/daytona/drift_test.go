package daytona

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
)

// of makes an adapter for a server that answers everything in one way.
func of(t testing.TB, status int, body string) *Provider {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	p, err := New(Config{APIURL: server.URL, Key: func() (string, error) { return "dtn_key", nil }})
	require.NoError(t, err)
	return p
}

// typed fails unless an error is the contract's, or that of a context, and keeps the key to itself.
func typed(t testing.TB, err error) {
	t.Helper()
	var one *adapters.Error
	if err == nil || errors.Is(err, context.DeadlineExceeded) {
		return
	}
	require.ErrorAs(t, err, &one)
	require.NotContains(t, err.Error(), "dtn_key")
}

// FuzzAnswers has every call meet any answer: a typed error or a value, and never a panic.
func FuzzAnswers(f *testing.F) {
	for _, body := range []string{
		``, `null`, `[]`, `"text"`, `<html><body>Bad gateway</body></html>`, `{`, `{"id":7}`, `{"items":null,"nextCursor":"x"}`,
		`{"id":"a","state":"brand_new","labels":null,"createdAt":"yesterday"}`, `{"id":"a","name":"box","state":"started","desiredState":"started","labels":{"isthmus-id":"box"}}`,
		`{"items":[{"id":"a","labels":{"isthmus-id":"box","isthmus-deployment":"d"},"state":"started"}]}`, `{"statusCode":"400","message":{"a":1}}`,
		`{"id":"s","name":"daytona-small","state":"active","size":null,"cpu":1e99}`, `{"url":"://","token":null}`, `{"url":"ftp://x","token":"t"}`,
	} {
		for _, status := range []int{200, 201, 204, 302, 400, 404, 409, 429, 500, 502} {
			f.Add(status, body)
		}
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		if status < 200 || status > 599 || status == 204 && body != "" || status == 304 && body != "" {
			return
		}
		p := of(t, status, body)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		spec := adapters.Spec{BoxID: "box", Attempt: "a", Deployment: "d", Template: adapters.Template{Name: "base"}, Envd: envd.Config{Deadline: time.Now().Add(time.Hour)}}
		_, err := p.Get(ctx, "box")
		typed(t, err)
		_, err = p.List(ctx, "d")
		typed(t, err)
		_, err = p.Resolve(ctx, "base")
		typed(t, err)
		_, err = p.Create(ctx, spec)
		typed(t, err)
		_, err = p.Address(ctx, "box")
		typed(t, err)
		typed(t, p.Extend(ctx, "box", time.Now().Add(time.Hour)))
		_, err = p.Snapshots(ctx, "d")
		typed(t, err)
		typed(t, p.Pause(ctx, "box", adapters.LevelFilesystem))
		_, err = p.Exec(ctx, "box", []string{"/bin/true"})
		typed(t, err)
	})
}

// TestTheKeyStaysWithTheAccount sends it neither in clear where the API has TLS, nor where a redirect leads.
func TestTheKeyStaysWithTheAccount(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the key was sent elsewhere: %s", r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	away := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer away.Close()
	p, err := New(Config{APIURL: away.URL, Key: func() (string, error) { return "dtn_key", nil }})
	require.NoError(t, err)
	_, err = p.List(t.Context(), "d")
	require.Error(t, err)

	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"id":"a","state":"started","labels":{"isthmus-id":"box"},"toolboxProxyUrl":"` + elsewhere.URL + `","url":"` + elsewhere.URL + `"}`))
	}))
	defer secure.Close()
	p, err = New(Config{APIURL: secure.URL, Key: func() (string, error) { return "dtn_key", nil }, Client: secure.Client()})
	require.NoError(t, err)
	_, err = p.Exec(t.Context(), "box", []string{"/bin/true"})
	require.Equal(t, adapters.KindUnavailable, adapters.KindOf(err), "%v", err)
}
