package api_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/server/api"
	"github.com/stretchr/testify/require"
)

const (
	teamOne = "11111111-1111-4111-8111-111111111111"
	teamTwo = "22222222-2222-4222-8222-222222222222"
)

// plane is a control plane over a fake fleet.
type plane struct {
	fleet   *fakeFleet
	handler http.Handler
	log     *bytes.Buffer
}

// newPlane makes one per test.
func newPlane(t testing.TB) *plane {
	t.Helper()
	p := &plane{fleet: newFakeFleet(), log: &bytes.Buffer{}}
	handler, err := api.New(api.Config{
		Fleet: p.fleet, Keys: fakeKeys{}, Domain: "localhost:3000",
		Log: slog.New(slog.NewJSONHandler(p.log, nil)),
	})
	require.NoError(t, err)
	p.handler = handler
	return p
}

// call sends one request with team one's key. A header value of "" takes the header away, one with line
// breaks is sent once for each line.
func (p *plane) call(method, path, body string, header map[string]string) *answer {
	if method == "" {
		method = http.MethodGet
	}
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
		if header["Transfer-Encoding"] == "chunked" {
			reader = io.MultiReader(reader) // hides the length
		}
	}
	r := httptest.NewRequest(method, "http://localhost:3000/", reader)
	// Set by hand: the helper refuses some of what a client can send.
	path, r.URL.RawQuery, _ = strings.Cut(path, "?")
	parsed, err := r.URL.Parse("http://localhost:3000" + path)
	if err == nil {
		r.URL.Path, r.URL.RawPath = parsed.Path, parsed.RawPath
	}
	if strings.Contains(path, "..") || strings.HasPrefix(path, "//") {
		r.URL.Path, r.URL.RawPath = path, "" // Parse would have cleaned it
	}
	r.Header.Set("X-API-Key", keyOne)
	r.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		r.Header.Del(name)
		if value == "" || name == "Transfer-Encoding" {
			continue
		}
		for line := range strings.SplitSeq(value, "\n") {
			r.Header.Add(name, line)
		}
	}
	recorder := httptest.NewRecorder()
	p.handler.ServeHTTP(recorder, r)
	return &answer{recorder}
}

// answer is what came back.
type answer struct{ *httptest.ResponseRecorder }

// failure reads an error, which must be JSON with both keys and the status in it.
func (a *answer) failure(t testing.TB) openapi.Error {
	t.Helper()
	require.Equal(t, "application/json", a.Header().Get("Content-Type"), a.Body.String())
	var failure openapi.Error
	a.into(t, &failure)
	require.Equal(t, int32(a.Code), failure.Code)
	require.NotEmpty(t, failure.Message)
	return failure
}

func (a *answer) into(t testing.TB, value any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(a.Body.Bytes(), value), a.Body.String())
}
