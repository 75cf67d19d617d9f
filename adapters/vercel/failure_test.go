package vercel

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/bootstrap"
)

const secretToken = "vercel-secret-token"

// newTestPlace is an account at a server of the test.
func newTestPlace(t testing.TB, handler http.HandlerFunc) *place {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	p, err := newPlace(Config{
		APIURL: server.URL, Token: func() (string, error) { return secretToken, nil }, Team: "team_1", Project: "prj_1", NoBake: true,
		Envd: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("envd")), nil },
	})
	require.NoError(t, err)
	return p
}

// TestErrorMap holds every row of the vendor's errors against the kinds of the contract.
func TestErrorMap(t *testing.T) {
	body := func(code, message string) string {
		return `{"error":{"code":"` + code + `","message":"` + message + `"}}`
	}
	for name, c := range map[string]struct {
		status      int
		body        string
		making, not adapters.Kind // while making a sandbox, and otherwise
	}{
		"a wrong body":             {400, body("bad_request", "no"), adapters.KindInvalid, adapters.KindInvalid},
		"a wrong time-out":         {400, body("sandbox_timeout_invalid", "no"), adapters.KindInvalid, adapters.KindInvalid},
		"no credentials":           {401, "", adapters.KindCredentials, adapters.KindCredentials},
		"the plan":                 {402, body("payment_required", "pay"), adapters.KindQuota, adapters.KindQuota},
		"another team":             {403, body("forbidden", "no"), adapters.KindCredentials, adapters.KindCredentials},
		"not there":                {404, body("not_found", "no"), adapters.KindNotFound, adapters.KindNotFound},
		"a drive in use":           {409, body("conflict", "no"), adapters.KindPrecondition, adapters.KindPrecondition},
		"stopped":                  {410, body("sandbox_stopped", "no"), adapters.KindNotFound, adapters.KindNotFound},
		"an expired snapshot":      {410, body("snapshot_not_found", "no"), adapters.KindNotFound, adapters.KindNotFound},
		"being stopped":            {422, body("sandbox_stopping", "no"), adapters.KindPrecondition, adapters.KindPrecondition},
		"being copied":             {422, body("sandbox_snapshotting", "no"), adapters.KindPrecondition, adapters.KindPrecondition},
		"too many calls":           {429, body("rate_limited", "slow down"), adapters.KindRateLimited, adapters.KindRateLimited},
		"too many calls, no body":  {429, "", adapters.KindRateLimited, adapters.KindRateLimited},
		"too many sandboxes":       {429, body("rate_limited", "concurrent sandboxes"), adapters.KindQuota, adapters.KindQuota},
		"no room":                  {503, body("unavailable", "No capacity in iad1"), adapters.KindCapacity, adapters.KindCapacity},
		"an outage":                {503, body("unavailable", "try later"), adapters.KindUnknownOutcome, adapters.KindUnavailable},
		"a fault":                  {500, body("internal", "oh"), adapters.KindUnknownOutcome, adapters.KindUnavailable},
		"a gateway":                {502, "<html>bad gateway</html>", adapters.KindUnknownOutcome, adapters.KindUnavailable},
		"a gateway's time-out":     {504, "", adapters.KindUnknownOutcome, adapters.KindUnavailable},
		"a page that is not there": {404, "<html>not found</html>", adapters.KindUnknownOutcome, adapters.KindUnavailable},
		"a redirect":               {302, "", adapters.KindUnknownOutcome, adapters.KindUnavailable},
		"no JSON":                  {200, "<html>hello</html>", adapters.KindUnknownOutcome, adapters.KindUnavailable},
		"half an answer":           {200, `{"sandbox":{"na`, adapters.KindUnknownOutcome, adapters.KindUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			p := newTestPlace(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "https://elsewhere.example.com/")
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			for makes, want := range map[bool]adapters.Kind{true: c.making, false: c.not} {
				var into view
				err := p.api.send(t.Context(), request{method: http.MethodPost, path: "/v3/sandboxes", body: struct{}{}, into: &into, makes: makes})
				var typed *adapters.Error
				require.ErrorAs(t, err, &typed)
				require.Equal(t, want, typed.Kind, "makes: %v, %v", makes, typed.Err)
				require.NotEmpty(t, typed.Message)
				require.NotContains(t, err.Error()+typed.Err.Error(), secretToken)
				if want == adapters.KindRateLimited {
					require.Equal(t, 7*time.Second, typed.RetryAfter)
				}
			}
		})
	}
}

// TestNothingIsSentElsewhere follows no redirect with the token.
func TestNothingIsSentElsewhere(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the token went to another place: %v", r.Header)
	}))
	defer elsewhere.Close()
	p := newTestPlace(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	})
	_, err := p.Get(t.Context(), "i123")
	require.Equal(t, adapters.KindUnavailable, adapters.KindOf(err))
}

// TestGivenUp ends a call with its context, and says so.
func TestGivenUp(t *testing.T) {
	release := make(chan struct{})
	p := newTestPlace(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-release
	})
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.Create(ctx, adapters.Spec{BoxID: "i123", Template: adapters.Template{Name: "base"}})
	require.ErrorIs(t, err, context.Canceled)
}

// unbooted makes sandboxes and starts nothing in them.
type unbooted struct {
	adapters.Provider
	place *place
}

func (u unbooted) Create(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	v, err := u.place.make(ctx, spec, newSandbox{})
	return v.Sandbox.box(), err
}

// TestAnAnswerThatNamesNoSession is overcome by the name of the box, which tells whose attempt it is of: one is made, and
// it is marked that it was so.
func TestAnAnswerThatNamesNoSession(t *testing.T) {
	creates := 0
	p := newTestPlace(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodPost {
			creates++
			_, _ = io.WriteString(w, `{"sandbox":{"name":"i123","status":"running"}}`)
			return
		}
		_, _ = io.WriteString(w, `{"sandbox":{"name":"i123","status":"running","tags":{"isthmus-deployment":"d","isthmus-attempt":"a"}},"session":{"id":"s"}}`)
	})
	w := adapters.Watch(unbooted{bootstrap.New(p, bootstrap.Config{}), p}, nil)
	box, err := w.Create(t.Context(), adapters.Spec{BoxID: "i123", Attempt: "a", Deployment: "d"})
	require.NoError(t, err)
	require.Equal(t, "a", box.Attempt)
	require.Equal(t, 1, creates)
	require.Len(t, w.Drifts(), 1)
	require.True(t, w.Drifts()[0].Drifted)
	require.Equal(t, adapters.FeatureCreate, w.Drifts()[0].Feature)
}

// FuzzAnswers answers everything with the same bytes: the adapter fails with an error of the contract and never panics.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `[]`, `null`, `{"sandbox":null,"session":{"id":5}}`, `<html>`, `{"error":{"code":"bad_request"}}`, `{"error":"text"}`,
		`{"sandbox":{"name":"i123","status":"hibernating","tags":{"isthmus-deployment":"d"}},"session":{"id":"s","timeout":-1},"routes":[{"url":"::","port":49980}]}`,
		`{"command":{"id":"c","exitCode":null}}` + "\n" + `{"stream":"stdout","data":"+\n"}` + "\n" + `{"stream":"error","data":{"code":"x"}}`,
		`{"stream":"stdout","data":{"not":"text"}}` + "\n" + `{"command":{"exitCode":3}}`, `{"sandboxes":[null,{}],"pagination":{"next":"1"}}`,
	} {
		f.Add(200, seed)
		f.Add(400, seed)
		f.Add(503, seed)
	}
	f.Fuzz(func(t *testing.T, status int, answer string) {
		if status < 200 || status > 599 {
			return
		}
		p := newTestPlace(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, answer)
		})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		spec := adapters.Spec{BoxID: "i123", Attempt: "a", Deployment: "d", Template: adapters.Template{Name: "base"}}
		_, errCreate := p.Create(ctx, spec)
		_, errGet := p.Get(ctx, "i123")
		_, errList := p.List(ctx, "d")
		_, errReach := p.Address(ctx, "i123")
		program, errExec := p.Exec(ctx, "i123", []string{"/bin/true"})
		if errExec == nil {
			_, _ = io.Copy(io.Discard, program)
			_, _ = program.Wait(ctx)
			_ = program.Close()
		}
		_, errResume := p.Resume(ctx, spec)
		_, errSnapshot := p.Snapshot(ctx, spec, "i456")
		for _, err := range []error{
			errCreate, errGet, errList, errReach, errExec, errResume, errSnapshot, p.Destroy(ctx, "i123"), p.Extend(ctx, "i123", time.Now()),
			p.Pause(ctx, "i123", adapters.LevelFilesystem), p.SetNetwork(ctx, "i123", adapters.Network{}), p.Put(ctx, "i123", "/a", 0o644, strings.NewReader("x")),
		} {
			var typed *adapters.Error
			if err != nil && ctx.Err() == nil {
				require.ErrorAs(t, err, &typed)
			}
		}
	})
}
