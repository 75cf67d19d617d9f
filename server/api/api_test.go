package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/openapi/check"
	"github.com/isthmus/isthmus/store"
	"github.com/stretchr/testify/require"
)

// TestCreateBodies sends what each generation of clients sends, and looks at what the fleet is asked for.
func TestCreateBodies(t *testing.T) {
	p := newPlane(t)
	for _, row := range []struct {
		name, path, body string
		timeout          time.Duration
		secure           bool
	}{
		{"0.x", "/sandboxes", `{"templateID":"base","metadata":{"a":"b"}}`, 15 * time.Second, false},
		{"JS 1.0", "/sandboxes", `{"templateID":"base","timeout":300}`, 300 * time.Second, false},
		{"JS 1.5", "/sandboxes", `{"templateID":"base","timeout":300,"autoPause":false}`, 300 * time.Second, false},
		{"JS 1.13", "/sandboxes", `{"templateID":"base","timeout":300,"autoPause":false,"allow_internet_access":true}`, 300 * time.Second, false},
		{"JS 2.30", "/sandboxes", `{"templateID":"base","timeout":300,"secure":true,"allow_internet_access":true,"autoPause":false,"autoResume":{"enabled":false}}`, 300 * time.Second, true},
		{"Py 2.45", "/sandboxes", `{"templateID":"base","timeout":300,"secure":true,"allow_internet_access":true,"metadata":{},"envVars":{}}`, 300 * time.Second, true},
		{"JS 2.51", "/v2/sandboxes", `{"templateID":"base"}`, 300 * time.Second, true},
		{"Py 2.63", "/v2/sandboxes", `{"templateID":"base","timeout":60,"metadata":{},"envVars":{},"autoPause":false}`, time.Minute, true},
		{"all defaults", "/v2/sandboxes", `{"templateID":"base","autoPauseMemory":true,"mcp":null,"volumeMounts":[],"iam":{},"network":{"allowPublicTraffic":null,"allowOut":[],"denyOut":[],"dnsServers":[],"httpsPorts":[],"rules":{},"egressProxy":null}}`, 300 * time.Second, true},
		{"all null", "/v2/sandboxes", `{"templateID":"base","timeout":null,"metadata":null,"envVars":null,"network":null,"autoPause":null,"autoResume":null,"iam":null,"volumeMounts":null}`, 300 * time.Second, true},
		{"unknown fields", "/v2/sandboxes", `{"templateID":"base","colour":"red","AUTOPAUSE":true,"network":{"x":1}}`, 300 * time.Second, true},
		{"harmless mcp", "/v2/sandboxes", `{"templateID":"base","mcp":{"github":{"token":"x"}}}`, 300 * time.Second, true},
		{"upper case and default tag", "/v2/sandboxes", `{"templateID":"Base:default"}`, 300 * time.Second, true},
		{"longest", "/v2/sandboxes", `{"templateID":"base","timeout":86400}`, 24 * time.Hour, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			p.fleet.reset()
			answer := p.call("POST", row.path, row.body, nil)
			require.Equal(t, http.StatusCreated, answer.Code, answer.Body.String())
			var sandbox map[string]any
			answer.into(t, &sandbox)
			require.Equal(t, "6532622b", sandbox["clientID"])
			require.Equal(t, "tpl00000000000000000", sandbox["templateID"])
			require.Equal(t, "localhost:3000", sandbox["domain"])
			require.NotContains(t, sandbox, "trafficAccessToken")
			_, tokened := sandbox["envdAccessToken"]
			require.Equal(t, row.secure, tokened)
			require.Len(t, p.fleet.requests, 1)
			request := p.fleet.requests[0]
			require.Equal(t, "base", request.Template)
			require.Equal(t, row.timeout, request.Timeout)
			require.Equal(t, row.secure, request.Secure)
			require.Equal(t, teamOne, request.TeamID)
			require.True(t, request.Network.Internet())
		})
	}
}

func TestCreateNetworkAndIdempotency(t *testing.T) {
	p := newPlane(t)
	body := `{"templateID":"base","metadata":{"a":"1","b":"2"},"network":{"allowPublicTraffic":false,"maskRequestHost":"localhost:${PORT}","denyOut":["0.0.0.0/0"]}}`
	answer := p.call("POST", "/v2/sandboxes", body, map[string]string{"Idempotency-Key": "key-1"})
	require.Equal(t, http.StatusCreated, answer.Code, answer.Body.String())
	require.Contains(t, answer.Body.String(), `"trafficAccessToken":"traffic-`)
	first := p.fleet.requests[0]
	require.False(t, first.Network.Internet())
	require.Equal(t, "localhost:${PORT}", first.Network.MaskRequestHost)
	require.Equal(t, "key-1", first.IdempotencyKey)

	again := `{ "metadata": {"b":"2","a":"1"}, "network":{"denyOut":["0.0.0.0/0"],"maskRequestHost":"localhost:${PORT}","allowPublicTraffic":false}, "templateID":"base" }`
	p.call("POST", "/v2/sandboxes", again, map[string]string{"Idempotency-Key": "key-1"})
	require.Equal(t, first.Fingerprint, p.fleet.requests[1].Fingerprint, "the same request, written differently")
	p.call("POST", "/v2/sandboxes", `{"templateID":"base"}`, map[string]string{"Idempotency-Key": "key-1"})
	require.NotEqual(t, first.Fingerprint, p.fleet.requests[2].Fingerprint)
	p.call("POST", "/v2/sandboxes", `{"templateID":"base"}`, nil)
}

func TestDetailHasNoNull(t *testing.T) {
	p := newPlane(t)
	p.fleet.add(teamOne, "i1", 0, nil)
	for _, path := range []string{"/sandboxes/i1", "/sandboxes/i1-6532622b", "/sandboxes", "/v2/sandboxes", "/v2/sandboxes/i1/logs", "/sandboxes/i1/logs", "/sandboxes/i1/metrics"} {
		answer := p.call("GET", path, "", nil)
		require.Equal(t, http.StatusOK, answer.Code, path)
		require.NotContains(t, answer.Body.String(), "null", path)
	}
	var detail openapi.SandboxDetail
	p.call("GET", "/sandboxes/i1", "", nil).into(t, &detail)
	require.Equal(t, "envd-i1", *detail.EnvdAccessToken)
	require.Equal(t, openapi.SandboxLifecycleOnTimeoutKill, detail.Lifecycle.OnTimeout)
	require.True(t, start.Equal(detail.StartedAt))

	empty := newPlane(t)
	for _, path := range []string{"/sandboxes", "/v2/sandboxes"} {
		require.Equal(t, "[]\n", empty.call("GET", path, "", nil).Body.String())
	}
}

func TestListPages(t *testing.T) {
	p := newPlane(t)
	for i, id := range []string{"a", "b", "c"} {
		p.fleet.add(teamOne, id, i/2, map[string]string{"a b": "c&d=é", "n": id}) // a and b start together
	}
	p.fleet.add(teamTwo, "d", 0, map[string]string{"a b": "c&d=é"})
	for _, row := range []struct{ query, want string }{
		{"", "c b a"},
		{"&order=asc", "a b c"},
		{"&metadata=a%252520b%3Dc%252526d%25253D%2525C3%2525A9", "c b a"}, // as SDKs encode it
		{"&metadata=n%3Da", "a"}, // as people write it
		{"&metadata=n%3Da%26x%3Dy", ""},
		{"&metadata=", "c b a"},
		{"&state=running", "c b a"},
		{"&state=paused&state=running", "c b a"},
		{"&state=running,paused", "c b a"},
		{"&state=", "c b a"},
		{"&state=paused", ""},
		{"&template=base", "c b a"},
		{"&template=tpl00000000000000000", "c b a"},
		{"&template=python", ""},
		{"&template=unknown", ""},
		{"&startedAfter=2026-11-29T12:01:00.123456789Z", "c"},
		{"&startedAfter=2026-11-29T13:01:00.123456789%2B01:00", "c"},
		{"&unknown=1", "c b a"},
	} {
		require.Equal(t, row.want, strings.Join(pages(t, p, row.query), " "), row.query)
	}
	require.Equal(t, "3", p.call("GET", "/v2/sandboxes?limit=1", "", nil).Header().Get("X-Total-Running"))
	require.Equal(t, "0", p.call("GET", "/v2/sandboxes?template=unknown", "", nil).Header().Get("X-Total-Running"))
	require.NotContains(t, p.call("GET", "/v2/sandboxes?state=paused", "", nil).Header(), "X-Total-Running")
	require.NotContains(t, p.call("GET", "/v2/sandboxes", "", nil).Header(), "X-Next-Token")
}

// pages reads a list one by one and returns the ids.
func pages(t *testing.T, p *plane, query string) (ids []string) {
	next := ""
	for {
		answer := p.call("GET", "/v2/sandboxes?limit=1&nextToken="+next+query, "", nil)
		require.Equal(t, http.StatusOK, answer.Code, answer.Body.String())
		var page []openapi.ListedSandbox
		answer.into(t, &page)
		for _, sb := range page {
			ids = append(ids, sb.SandboxID)
		}
		if next = answer.Header().Get("X-Next-Token"); next == "" {
			return ids
		}
	}
}

func TestLifeCalls(t *testing.T) {
	p := newPlane(t)
	for _, row := range []struct {
		method, path, body string
		status             int
		change             string
	}{
		{"POST", "/sandboxes/i1/connect", `{"timeout":60}`, 200, "connect 1m0s"},
		{"POST", "/sandboxes/i1-abc/connect", `{"timeout":0}`, 200, "connect 0s"},
		{"POST", "/v2/sandboxes/i1/connect", ``, 200, "connect 5m0s"},
		{"POST", "/v2/sandboxes/i1/connect", `{}`, 200, "connect 5m0s"},
		{"POST", "/v2/sandboxes/i1/connect", `null`, 200, "connect 5m0s"},
		{"POST", "/v2/sandboxes/i1/connect", `{"timeout":7,"memory":false}`, 200, "connect 7s memory=false"},
		{"POST", "/v2/sandboxes/p1/connect", `{}`, 201, "connect 5m0s"},
		{"POST", "/sandboxes/p1/connect", `{"timeout":1}`, 201, "connect 1s"},
		{"POST", "/sandboxes/p1/resume", ``, 201, "connect 15s"},
		{"POST", "/sandboxes/p1-abc/resume", `{"timeout":60,"autoPause":false}`, 201, "connect 1m0s autoPause=false"},
		{"POST", "/sandboxes/i1/timeout", `{"timeout":0}`, 204, "timeout 0s"},
		{"POST", "/sandboxes/i1/timeout", `{"timeout":2147483647}`, 204, "timeout 596523h14m7s"},
		{"POST", "/sandboxes/i1/refreshes", `{"duration":0}`, 204, "refresh 15s"},
		{"POST", "/sandboxes/i1/refreshes", ``, 204, "refresh 15s"},
		{"POST", "/sandboxes/i1/refreshes", `{"duration":3600}`, 204, "refresh 1h0m0s"},
		{"POST", "/sandboxes/i1/pause", ``, 204, "pause"},
		{"POST", "/sandboxes/i1-abc/pause", `{}`, 204, "pause"},
		{"POST", "/sandboxes/i1/pause", `{"memory":false}`, 204, "pause memory=false"},
		{"POST", "/sandboxes/i1/pause", `{"requireHealthyGuest":true}`, 204, "pause healthy"},
		{"POST", "/sandboxes/p1/pause", `{"memory":true}`, 409, "pause memory=true"},
		{"PUT", "/sandboxes/i1/network", `{}`, 204, "network true [] [] 0"},
		{"PUT", "/sandboxes/i1/network", `{"allow_internet_access":false}`, 204, "network false [] [] 0"},
		{"PUT", "/sandboxes/i1/network", `{"allowOut":["*","*.A.example"],"denyOut":["0.0.0.0/0"]}`, 204, "network false [* *.a.example] [0.0.0.0/0] 0"},
		{"PUT", "/sandboxes/i1/network", `{"allowOut":["1.1.1.1","A.example"],"denyOut":["0.0.0.0/0"]}`, 204, "network false [1.1.1.1 a.example] [0.0.0.0/0] 0"},
		{"PUT", "/sandboxes/i1/network", `{"rules":{"a.example":[{"transform":{"headers":{"A":"b"}}}]}}`, 204, "network true [] [] 1"},
		{"POST", "/sandboxes/i1/snapshots", `{}`, 201, "snapshot "},
		{"POST", "/sandboxes/i1/snapshots", `{"name":"Mine"}`, 201, "snapshot mine:default"},
		{"POST", "/sandboxes/i1/snapshots", `{"name":"mine:v1","memory":false}`, 201, "snapshot mine:v1 memory=false"},
		{"GET", "/snapshots?sandboxID=i1-abc&name=mine&limit=2", ``, 200, "snapshots i1 mine 2"},
		{"DELETE", "/templates/mine%3Adefault", ``, 204, "remove mine"},
		{"DELETE", "/templates/other:v1", ``, 404, "remove other:v1"},
		{"DELETE", "/sandboxes/i1", ``, 204, "kill"},
		{"DELETE", "/sandboxes/i1-6532622b", ``, 204, "kill"},
		{"DELETE", "/sandboxes/i1", `{"any":"body"}`, 204, "kill"},
	} {
		t.Run(row.path+" "+row.body, func(t *testing.T) {
			p.fleet.reset()
			p.fleet.add(teamOne, "i1", 0, nil)
			p.fleet.add(teamOne, "p1", 0, nil)
			paused := p.fleet.sandboxes["p1"]
			paused.State = store.StatePaused
			p.fleet.sandboxes["p1"] = paused
			answer := p.call(row.method, row.path, row.body, nil)
			require.Equal(t, row.status, answer.Code, answer.Body.String())
			require.Equal(t, []string{row.change}, p.fleet.changes)
			if row.status == 204 {
				require.Empty(t, answer.Body.String())
			}
		})
	}
}

func TestResumeNeedsAPausedSandbox(t *testing.T) {
	p := newPlane(t)
	p.fleet.add(teamOne, "i1", 0, nil)
	require.Equal(t, 409, p.call("POST", "/sandboxes/i1/resume", "", nil).Code)
	require.Equal(t, 404, p.call("POST", "/sandboxes/unknown/resume", "", nil).Code)
	require.Equal(t, 400, p.call("POST", "/sandboxes/i1/resume", `{"timeout":2147483647}`, nil).Code)
	require.Empty(t, p.fleet.changes)
}

func TestSnapshotsAreListed(t *testing.T) {
	p := newPlane(t)
	answer := p.call("GET", "/snapshots", "", nil)
	require.JSONEq(t, `[{"snapshotID":"mine:default","names":["mine"]},{"snapshotID":"s0000000000000000001:default","names":[]}]`, answer.Body.String())
	next := answer.Header().Get("X-Next-Token")
	require.NotEmpty(t, next)
	require.Equal(t, 200, p.call("GET", "/snapshots?nextToken="+next, "", nil).Code)
}

func TestMetricsAndLogs(t *testing.T) {
	p := newPlane(t)
	p.fleet.add(teamOne, "i1", 0, nil)
	require.Contains(t, p.call("GET", "/sandboxes/i1/metrics?start=5&end=9", "", nil).Body.String(), `"cpuUsedPct":12.345678901`)
	require.Equal(t, [2]time.Time{time.Unix(5, 0), time.Unix(9, 0)}, p.fleet.window)
	require.Equal(t, 200, p.call("GET", "/sandboxes/i1/metrics", "", nil).Code)
	require.True(t, p.fleet.window[0].IsZero() && p.fleet.window[1].IsZero())

	var many openapi.SandboxesWithMetrics
	p.call("GET", "/sandboxes/metrics?sandbox_ids=i1,i2&sandbox_ids=i1-abc,i1", "", nil).into(t, &many)
	require.Len(t, many.Sandboxes, 1)
	require.Equal(t, start.Unix(), many.Sandboxes["i1"].TimestampUnix)

	var logs openapi.SandboxLogs
	p.call("GET", "/sandboxes/i1/logs?start=1000", "", nil).into(t, &logs)
	require.Equal(t, store.LogQuery{From: time.UnixMilli(1000), Limit: 1000}, p.fleet.logQuery)
	require.JSONEq(t, `{"timestamp":"2026-11-29T12:00:00.123456789Z","level":"info","logger":"envd","message":"started","pid":"7"}`, logs.Logs[0].Line)
	require.Len(t, logs.LogEntries, 1)

	for query, want := range map[string]store.LogQuery{
		"":                                  {Limit: 1000, Backward: true},
		"?cursor=5":                         {Limit: 1000, Backward: true, To: time.UnixMilli(5)},
		"?cursor=5&direction=forward":       {Limit: 1000, From: time.UnixMilli(5)},
		"?level=warn&search=a%20b&limit=10": {Limit: 10, Backward: true, MinLevel: "warn", Search: "a b"},
	} {
		require.Equal(t, 200, p.call("GET", "/v2/sandboxes/i1/logs"+query, "", nil).Code)
		require.Equal(t, want, p.fleet.logQuery, query)
	}
	require.JSONEq(t, `{"logs":[]}`, p.call("GET", "/v2/sandboxes/i1/logs?limit=0", "", nil).Body.String())
	require.Equal(t, 404, p.call("GET", "/v2/sandboxes/i2/logs?limit=0", "", nil).Code)
}

func TestTeamsAndHealth(t *testing.T) {
	p := newPlane(t)
	want := `[{"teamID":"` + teamOne + `","name":"one","apiKey":"` + keyOne + `","isDefault":true}]`
	require.JSONEq(t, want, p.call("GET", "/teams", "", nil).Body.String())
	bearer := map[string]string{"X-API-Key": "", "Authorization": "bearer " + keyOne}
	require.JSONEq(t, want, p.call("GET", "/teams", "", bearer).Body.String())
	health := p.call("GET", "/health", "", map[string]string{"X-API-Key": ""})
	require.Equal(t, 200, health.Code)
	foreign := map[string]string{"Authorization": "Bearer sk_e2b_0", "X-Team-ID": "x"}
	require.Equal(t, 200, p.call("GET", "/sandboxes", "", foreign).Code, "foreign credentials beside the key")
	require.NotContains(t, p.log.String(), keyOne[4:], "a key in the log")
}

// TestEveryOperation calls each operation of the document: none may be without an answer in its own words.
func TestEveryOperation(t *testing.T) {
	p := newPlane(t)
	document, err := check.Load(openapi.Document())
	require.NoError(t, err)
	require.Greater(t, len(document.Operations()), 80)
	served := 0
	for _, op := range document.Operations() {
		p.fleet.add(teamOne, "i1", 0, nil)
		names := strings.NewReplacer(
			":sandboxID", "i1", ":templateID", "base", ":buildID", "0f0f0f0f-0000-4000-8000-000000000000", ":", "x")
		body := map[string]string{
			"assignTemplateTags": `{"target":"base:default","tags":["b"]}`, "deleteTemplateTags": `{"name":"base","tags":["b"]}`,
		}[op.ID]
		answer := p.call(op.Method, names.Replace(op.Route), body, nil)
		switch {
		case op.Served:
			served++
			require.Less(t, answer.Code, 500, op.ID)
		case answer.Code == http.StatusGone:
			require.Contains(t, answer.failure(t).Message, "template create")
		default:
			require.Equal(t, http.StatusNotImplemented, answer.Code, op.ID)
			require.Contains(t, answer.failure(t).Message, op.ID+" is not served by this Isthmus")
		}
	}
	require.Equal(t, 23, served)
}

func TestFailuresOfTheFleet(t *testing.T) {
	p := newPlane(t)
	for _, row := range []struct {
		kind   adapters.Kind
		status int
		retry  string
	}{
		{adapters.KindInvalid, 400, ""}, {adapters.KindNotFound, 404, ""}, {adapters.KindExists, 409, ""},
		{adapters.KindPrecondition, 409, ""}, {adapters.KindCapacity, 503, "true"}, {adapters.KindRateLimited, 429, "true"},
		{adapters.KindTeamLimit, 429, "false"}, {adapters.KindQuota, 503, "false"}, {adapters.KindUnavailable, 503, "true"},
		{adapters.KindCredentials, 503, "false"}, {adapters.KindUnsupported, 400, ""}, {adapters.KindDeclined, 400, ""},
		{adapters.KindUnknownOutcome, 504, "false"}, {adapters.KindInternal, 500, ""},
	} {
		t.Run(string(row.kind), func(t *testing.T) {
			p.fleet.reset()
			p.fleet.fail = &adapters.Error{Kind: row.kind, Message: "do this", RetryAfter: 1500 * time.Millisecond, Err: http.ErrBodyNotAllowed}
			answer := p.call("POST", "/v2/sandboxes", `{"templateID":"base"}`, nil)
			require.Equal(t, row.status, answer.Code)
			require.Equal(t, "do this", answer.failure(t).Message)
			require.Equal(t, row.retry, answer.Header().Get("Should-Retry"))
			require.Equal(t, "2", answer.Header().Get("Retry-After"))
			if row.status >= 500 {
				require.Contains(t, p.log.String(), http.ErrBodyNotAllowed.Error())
			}
		})
	}
}
