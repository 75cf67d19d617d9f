package e2b_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/e2b"
	"github.com/isthmus/isthmus/envd"
)

const key = "e2b_the_secret_of_the_account"

// open makes the adapter of a server that answers as the test says.
func open(t *testing.T, answer http.HandlerFunc, change ...func(*e2b.Config)) *e2b.Provider {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-API-Key") != key {
			t.Errorf("%s %s came without the key", r.Method, r.URL)
		}
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	c := e2b.Config{APIURL: server.URL, Key: func() (string, error) { return key, nil }, Templates: []e2b.Template{{Name: "base", Inner: "inner-base"}}}
	for _, f := range change {
		f(&c)
	}
	p, err := e2b.New(c)
	require.NoError(t, err)
	return p
}

func spec() adapters.Spec {
	return adapters.Spec{
		BoxID: "i1", Attempt: "attempt", Deployment: "here", Template: adapters.Template{Name: "base"},
		Network: adapters.Network{Internet: true},
		Envd:    envd.Config{SandboxID: "i1", TemplateID: "t1", AccessToken: "wanted", EnvVars: map[string]string{"A": "b"}, Deadline: time.Now().Add(90 * time.Second)},
	}
}

func TestErrorsOfACreate(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		header map[string]string
		body   string
		want   adapters.Kind
		says   string
	}{
		"bad request":      {400, nil, `{"code":400,"message":"timeout is too long"}`, adapters.KindInvalid, "timeout is too long"},
		"not offered":      {400, nil, `{"code":400,"message":"no","error_code":"unsupported_field"}`, adapters.KindUnsupported, "no"},
		"wrong key":        {401, nil, `{"code":401,"message":"bad key ` + key + `"}`, adapters.KindCredentials, "refuses the API key"},
		"banned":           {403, nil, `{"code":403,"message":"blocked"}`, adapters.KindCredentials, "refuses the API key"},
		"no template":      {404, nil, `{"code":404,"message":"template not found"}`, adapters.KindNotFound, "template not found"},
		"conflict":         {409, nil, `{"code":409,"message":"busy"}`, adapters.KindPrecondition, "busy"},
		"rate":             {429, map[string]string{"Retry-After": "7"}, `{"code":429,"message":"slow down"}`, adapters.KindRateLimited, "slow down"},
		"concurrency":      {429, nil, `{"code":429,"message":"you have the maximum number of concurrent E2B sandboxes (20)"}`, adapters.KindQuota, "used up"},
		"a team's limit":   {429, map[string]string{"Should-Retry": "false"}, `{"code":429,"message":"enough"}`, adapters.KindQuota, "used up"},
		"fault":            {500, nil, `{"code":500,"message":"boot failed"}`, adapters.KindUnknownOutcome, "boot failed"},
		"not served":       {501, nil, `{"code":501,"message":"volumes"}`, adapters.KindUnsupported, "volumes"},
		"bad gateway":      {502, nil, `<html>`, adapters.KindUnknownOutcome, "502"},
		"capacity":         {503, nil, `{"code":503,"message":"no room"}`, adapters.KindCapacity, "no room"},
		"a proxy's":        {503, nil, `<html>busy</html>`, adapters.KindUnknownOutcome, "503"},
		"placement":        {504, nil, `{"code":504,"message":"time-out"}`, adapters.KindUnknownOutcome, "time-out"},
		"moved":            {302, map[string]string{"Location": "https://elsewhere.example/"}, ``, adapters.KindUnknownOutcome, "302"},
		"not its server":   {404, nil, `<html>not found</html>`, adapters.KindUnknownOutcome, "404"},
		"a strange 400":    {400, nil, `No`, adapters.KindUnknownOutcome, "400"},
		"no JSON":          {201, nil, `<html>`, adapters.KindUnknownOutcome, "no answer"},
		"no id":            {201, nil, `{}`, adapters.KindUnknownOutcome, "does not say which"},
		"a huge message":   {400, nil, `{"code":400,"message":"` + strings.Repeat("x", 5000) + `"}`, adapters.KindInvalid, "…"},
		"a field of a new": {201, nil, `{"sandboxID":"inner","envdVersion":"9.9.9","envdAccessToken":"theirs","news":{"a":[1]}}`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := open(t, func(w http.ResponseWriter, _ *http.Request) {
				for k, v := range test.header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte(test.body))
			})
			_, err := p.Create(t.Context(), spec())
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			var typed *adapters.Error
			require.ErrorAs(t, err, &typed)
			require.Equal(t, test.want, typed.Kind, "%v", err)
			require.Contains(t, typed.Message, test.says)
			require.Less(t, len(typed.Message), 400)
			require.NotContains(t, fmt.Sprintf("%v %v", err, errors.Unwrap(err)), key)
			if name == "rate" {
				require.Equal(t, 7*time.Second, typed.RetryAfter)
			}
			_, err = p.Create(t.Context(), spec())
			require.NotEqual(t, adapters.KindExists, adapters.KindOf(err), "the id is free again")
		})
	}
}

// TestAProxysWordIsNoProof keeps a box of which somebody else says that it is not there.
func TestAProxysWordIsNoProof(t *testing.T) {
	made := false
	p := open(t, func(w http.ResponseWriter, _ *http.Request) {
		if !made {
			made = true
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(`{"sandboxID":"inner","envdAccessToken":"theirs"}`))
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`<html>nothing here</html>`))
	})
	_, err := p.Create(t.Context(), spec())
	require.NoError(t, err)
	_, err = p.Get(t.Context(), "i1")
	require.Equal(t, adapters.KindUnavailable, adapters.KindOf(err))
	require.NotNil(t, adapters.MisreadOf(err))
	require.Equal(t, adapters.KindUnavailable, adapters.KindOf(p.Destroy(t.Context(), "i1")))
}

func TestALostAnswerIsNotAnOutage(t *testing.T) {
	p := open(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	_, err := p.Create(t.Context(), spec())
	require.Equal(t, adapters.KindUnknownOutcome, adapters.KindOf(err))
	_, err = p.Get(t.Context(), "i1")
	require.Equal(t, adapters.KindUnavailable, adapters.KindOf(err), "a look-up changes nothing")

	nobody := open(t, nil, func(c *e2b.Config) { c.APIURL = "http://127.0.0.1:1" })
	_, err = nobody.Create(t.Context(), spec())
	require.Equal(t, adapters.KindUnavailable, adapters.KindOf(err), "nothing was sent, so that nothing was made")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = p.Create(ctx, spec())
	require.ErrorIs(t, err, context.Canceled)
}

func TestAKeyThatCannotBeRead(t *testing.T) {
	p := open(t, nil, func(c *e2b.Config) { c.Key = func() (string, error) { return "", errors.New("no such file") } })
	_, err := p.List(t.Context(), "here")
	require.Equal(t, adapters.KindCredentials, adapters.KindOf(err))
}

func TestWhatACreateAsksFor(t *testing.T) {
	var path string
	var body map[string]any
	p := open(t, func(w http.ResponseWriter, r *http.Request) {
		path, body = r.URL.Path, nil
		_ = json.NewDecoder(r.Body).Decode(&body)
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"sandboxID":"inner","envdVersion":"0.6.13","envdAccessToken":"theirs","trafficAccessToken":"traffic","domain":"e2b.example"}`))
	})
	_, err := p.Create(t.Context(), spec())
	require.NoError(t, err)
	require.Equal(t, "/v2/sandboxes", path)
	require.InDelta(t, 90, body["timeout"], 1)
	delete(body, "timeout")
	require.Equal(t, map[string]any{
		"templateID": "inner-base",
		"metadata":   map[string]any{"isthmus-id": "i1", "isthmus-attempt": "attempt", "isthmus-deployment": "here"},
		"envVars":    map[string]any{"A": "b", "E2B_SANDBOX_ID": "i1", "E2B_TEMPLATE_ID": "t1"},
	}, body)
	_, err = p.Create(t.Context(), spec())
	require.Equal(t, adapters.KindExists, adapters.KindOf(err))

	inner, err := p.Native(t.Context(), "i1")
	require.NoError(t, err)
	require.Equal(t, "theirs", inner.EnvdToken)
	require.Equal(t, "traffic", inner.TrafficToken)
	require.Equal(t, "http://8080-inner.e2b.example", inner.Port(8080).URL.String())
	require.Equal(t, http.Header{"E2b-Sandbox-Id": {"inner"}, "E2b-Sandbox-Port": {"8080"}}, inner.Port(8080).Header)

	open := spec()
	open.BoxID, open.Envd.AccessToken = "i2", ""
	open.Network = adapters.Network{PrivatePorts: true, RequestHost: "app:${PORT}"}
	_, err = p.Create(t.Context(), open)
	require.NoError(t, err)
	require.Equal(t, "/sandboxes", path, "open unless asked for")
	require.Equal(t, false, body["allow_internet_access"])
	require.Equal(t, map[string]any{"allowPublicTraffic": false, "maskRequestHost": "app:${PORT}"}, body["network"])
}

func TestByOneURL(t *testing.T) {
	p := open(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"sandboxID":"inner","envdVersion":"0.6.13","envdAccessToken":"theirs"}`))
	}, func(c *e2b.Config) { c.SandboxURL = "https://sandbox.example/" })
	_, err := p.Create(t.Context(), spec())
	require.NoError(t, err)
	endpoint, err := p.Reach(t.Context(), "i1")
	require.NoError(t, err)
	require.Equal(t, "https://sandbox.example", endpoint.URL.String())
	require.Equal(t, http.Header{"E2b-Sandbox-Id": {"inner"}, "E2b-Sandbox-Port": {"49983"}}, endpoint.Header)
}

// TestListsAreReadToTheirEnd also meets a server that ignores the filter, and one whose pages never end.
func TestListsAreReadToTheirEnd(t *testing.T) {
	entry := func(n int, deployment string) map[string]any {
		return map[string]any{"sandboxID": "inner" + strconv.Itoa(n), "startedAt": time.Unix(int64(n), 0), "state": "running",
			"metadata": map[string]string{"isthmus-id": "i" + strconv.Itoa(n), "isthmus-deployment": deployment}}
	}
	p := open(t, func(w http.ResponseWriter, r *http.Request) {
		filter, err := url.ParseQuery(r.URL.Query().Get("metadata"))
		if err != nil || filter.Get("isthmus-deployment") != "here" {
			t.Errorf("filter %q", r.URL.RawQuery)
		}
		page, _ := strconv.Atoi(r.URL.Query().Get("nextToken"))
		if page < 3 {
			w.Header().Set("X-Next-Token", strconv.Itoa(page+1))
		} else {
			w.Header().Set("X-Next-Token", "3") // the same again
		}
		_ = json.NewEncoder(w).Encode([]any{entry(page*2, "here"), entry(page*2+1, "elsewhere")})
	})
	boxes, err := p.List(t.Context(), "here")
	require.NoError(t, err)
	var ids []string
	for _, box := range boxes {
		ids = append(ids, box.ID)
		require.True(t, box.Alive)
	}
	require.Equal(t, []string{"i0", "i2", "i4", "i6"}, ids)
}

// TestDestroyTakesEveryOne ends both boxes that a lost answer and a repeat have made.
func TestDestroyTakesEveryOne(t *testing.T) {
	var ended []string
	p := open(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			ended = append(ended, r.URL.Path)
			w.WriteHeader(http.StatusNoContent)
			return
		}
		meta := map[string]string{"isthmus-id": "i1"}
		_ = json.NewEncoder(w).Encode([]any{map[string]any{"sandboxID": "a", "metadata": meta}, map[string]any{"sandboxID": "b", "metadata": meta}})
	})
	require.NoError(t, p.Destroy(t.Context(), "i1"))
	require.Equal(t, []string{"/sandboxes/a", "/sandboxes/b"}, ended)
}

func TestMeasureAddsUp(t *testing.T) {
	start := time.Unix(1_000_000, 0).UTC()
	samples := 1
	p := open(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_, _ = w.Write([]byte(`{"sandboxID":"inner","envdVersion":"0.6.13","envdAccessToken":"theirs"}`))
			return
		}
		var all []map[string]any
		for i := range samples {
			all = append(all, map[string]any{"timestamp": start.Add(time.Duration(i) * 10 * time.Second), "cpuCount": 2, "cpuUsedPct": 50, "memTotal": 7})
		}
		_ = json.NewEncoder(w).Encode(all)
	})
	_, err := p.Create(t.Context(), spec())
	require.NoError(t, err)
	for want := range 3 {
		samples = want + 1
		s, err := p.Measure(t.Context(), "i1")
		require.NoError(t, err)
		require.Equal(t, time.Duration(want)*10*time.Second, s.CPUTime, "half of two processors")
		require.EqualValues(t, 7, s.MemTotal)
	}
}

func TestEntriesAreNumbered(t *testing.T) {
	at := time.Unix(5, 123).UTC()
	p := open(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_, _ = w.Write([]byte(`{"sandboxID":"inner","envdVersion":"0.6.13","envdAccessToken":"theirs"}`))
			return
		}
		entry := func(message, logger string) map[string]any {
			return map[string]any{"timestamp": at, "level": "info", "message": message, "fields": map[string]string{"logger": logger}}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"logs": []any{entry("sandbox created", "lifecycle"), entry("one", "envd"), entry("two", "envd")}})
	})
	_, err := p.Create(t.Context(), spec())
	require.NoError(t, err)
	entries, err := p.Entries(t.Context(), "i1", 0)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.Less(t, entries[0].Number, entries[1].Number, "of the same time, and yet in order")
	again, err := p.Entries(t.Context(), "i1", entries[0].Number)
	require.NoError(t, err)
	require.Equal(t, entries[1:], again)
}

func TestConfigurationsThatCannotBe(t *testing.T) {
	read := func() (string, error) { return key, nil }
	for name, c := range map[string]e2b.Config{
		"no URL":            {Key: read},
		"no key":            {APIURL: "https://api.example"},
		"a secret in a URL": {APIURL: "https://user:secret@api.example", Key: read},
		"another scheme":    {APIURL: "ftp://api.example", Key: read},
		"a bad sandbox URL": {APIURL: "https://api.example", Key: read, SandboxURL: "sandbox"},
	} {
		_, err := e2b.New(c)
		require.Error(t, err, name)
	}
}

func FuzzAnswers(f *testing.F) {
	for _, text := range []string{`{"sandboxID":"x"}`, `[]`, `null`, `{"code":"x"}`, `[{"metadata":null}]`, `{"logs":[{"timestamp":"x"}]}`} {
		f.Add(text, 200)
	}
	f.Fuzz(func(t *testing.T, text string, status int) {
		p := open(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(200 + max(0, status)%400)
			_, _ = w.Write([]byte(text))
		})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, created := p.Create(ctx, spec())
		_, got := p.Get(ctx, "i1")
		_, listed := p.List(ctx, "here")
		_, measured := p.Measure(ctx, "i1")
		_, entries := p.Entries(ctx, "i1", 0)
		for _, err := range []error{created, got, listed, measured, entries} {
			var typed *adapters.Error
			if err != nil && !errors.As(err, &typed) {
				t.Errorf("%T (%v) is not the contract's error", err, err)
			}
		}
	})
}
