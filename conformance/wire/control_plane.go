package wire

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// detail is a sandbox as get and list show it.
type detail struct {
	SandboxID       string            `json:"sandboxID"`
	ClientID        string            `json:"clientID"`
	TemplateID      string            `json:"templateID"`
	Alias           string            `json:"alias"`
	StartedAt       time.Time         `json:"startedAt"`
	EndAt           time.Time         `json:"endAt"`
	CPUCount        int               `json:"cpuCount"`
	MemoryMB        int               `json:"memoryMB"`
	DiskSizeMB      int               `json:"diskSizeMB"`
	State           string            `json:"state"`
	EnvdVersion     string            `json:"envdVersion"`
	EnvdAccessToken string            `json:"envdAccessToken"`
	Metadata        map[string]string `json:"metadata"`
}

func controlPlaneCases() []Case {
	return []Case{
		{"control plane/health needs no key", func(t T, s *Suite) {
			got := s.do(t, call{method: "GET", path: "/health"})
			that(t, got.status == 200 || got.status == 204, "got status %d", got.status)
		}},
		{"control plane/create v1", createV1},
		{"control plane/create v2", createV2},
		{"control plane/create answers only what is set", createOmits},
		{"control plane/get", get},
		{"control plane/get with a client id", getWithClientID},
		{"control plane/list v1 is a plain array", listV1},
		{"control plane/list v2 by pages", listPages},
		{"control plane/list by metadata in each encoding", listEncodings},
		{"control plane/connect extends only", connectExtends},
		{"control plane/connect v2 takes no body", connectV2},
		{"control plane/connect with the headers of a sandbox", connectWithHeaders},
		{"control plane/resume is for paused sandboxes", resumeRunning},
		{"control plane/timeout moves the end", timeoutMoves},
		{"control plane/timeout zero ends at once", timeoutZero},
		{"control plane/refreshes extend only", refreshes},
		{"control plane/kill twice", killTwice},
		{"control plane/metrics", metrics},
		{"control plane/logs", logs},
		{"control plane/teams", teams},
		{"control plane/preflight", preflight},
		{"control plane/unknown fields are ignored", unknownFields},
	}
}

// create makes a sandbox for one case; the returned function kills it.
func (s *Suite) create(t T, path string, fields map[string]any) (sandbox, func()) {
	t.Helper()
	if _, chosen := fields["templateID"]; !chosen {
		fields["templateID"] = s.target.Template
	}
	got := s.expect(t, 201, call{method: "POST", path: path, header: s.key(), body: encode(fields)})
	box := decode[sandbox](t, got.body)
	return box, func() {
		s.do(t, call{method: "DELETE", path: "/sandboxes/" + box.SandboxID, header: s.key()})
	}
}

// detail reads one sandbox.
func (s *Suite) detail(t T, id string) detail {
	t.Helper()
	return decode[detail](t, s.expect(t, 200, call{method: "GET", path: "/sandboxes/" + id, header: s.key()}).body)
}

// post is a request of the control plane with a JSON body.
func (s *Suite) post(path, body string) call {
	return call{method: "POST", path: path, header: s.key(), body: body}
}

// about fails the case unless a sandbox lives for so many seconds.
func about(t T, d detail, seconds int) {
	t.Helper()
	lives := d.EndAt.Sub(d.StartedAt)
	want := time.Duration(seconds) * time.Second
	that(t, lives > want-5*time.Second && lives < want+2*time.Second, "the sandbox lives for %v, want %v", lives, want)
}

func createV1(t T, s *Suite) {
	box, kill := s.create(t, "/sandboxes", map[string]any{})
	defer kill()
	equal(t, "", box.EnvdAccessToken, "a sandbox that is not secure has no token; envdAccessToken")
	about(t, s.detail(t, box.SandboxID), 15)
	open := http.Header{"E2b-Sandbox-Id": {box.SandboxID}, "E2b-Sandbox-Port": {"49983"}, "Content-Type": {"application/json"}}
	s.expect(t, 200, call{method: "POST", path: "/process.Process/List", body: "{}", header: open, toSandbox: true})

	secure, kill := s.create(t, "/sandboxes", map[string]any{"secure": true, "timeout": 60})
	defer kill()
	that(t, secure.EnvdAccessToken != "", "a secure sandbox has a token")
	about(t, s.detail(t, secure.SandboxID), 60)
}

func createV2(t T, s *Suite) {
	box, kill := s.create(t, "/v2/sandboxes", map[string]any{"metadata": map[string]string{"a": "b"}})
	defer kill()
	that(t, box.EnvdAccessToken != "", "every sandbox of v2 has a token")
	that(t, box.ClientID != "" && box.TemplateID != "" && box.EnvdVersion != "", "ids and version: %+v", box)
	that(t, strings.Trim(box.SandboxID, "abcdefghijklmnopqrstuvwxyz0123456789") == "", "id %q is not of [a-z0-9]", box.SandboxID)
	about(t, s.detail(t, box.SandboxID), 300)
	equal(t, map[string]string{"a": "b"}, s.detail(t, box.SandboxID).Metadata, "metadata")
	got := s.do(t, call{method: "GET", path: "/health", header: routeTo(box), toSandbox: true})
	that(t, got.status/100 == 2, "its envd answers /health with %d as soon as it is created", got.status)
}

func createOmits(t T, s *Suite) {
	got := s.expect(t, 201, s.post("/v2/sandboxes", encode(map[string]any{"templateID": s.target.Template})))
	fields := decode[map[string]any](t, got.body)
	id, _ := fields["sandboxID"].(string)
	defer s.do(t, call{method: "DELETE", path: "/sandboxes/" + id, header: s.key()})
	for name, value := range fields {
		that(t, value != nil || name == "domain" || name == "trafficAccessToken", "%s is null: clients need it absent", name)
	}
}

func get(t T, s *Suite) {
	d := s.detail(t, s.subject.SandboxID)
	equal(t, s.subject.SandboxID, d.SandboxID, "sandboxID")
	equal(t, "running", d.State, "state")
	equal(t, s.subject.EnvdAccessToken, d.EnvdAccessToken, "envdAccessToken, which old clients read here only")
	that(t, d.CPUCount >= 1 && d.MemoryMB >= 128 && d.DiskSizeMB > 0, "sizes: %+v", d)
	that(t, d.EnvdVersion != "" && d.ClientID != "" && d.TemplateID != "", "required fields: %+v", d)
}

func getWithClientID(t T, s *Suite) {
	d := s.detail(t, s.subject.SandboxID+"-"+s.subject.ClientID)
	equal(t, s.subject.SandboxID, d.SandboxID, "sandboxID")
}

func listV1(t T, s *Suite) {
	listed := decode[[]detail](t, s.expect(t, 200, call{method: "GET", path: "/sandboxes", header: s.key()}).body)
	found := 0
	for _, d := range listed {
		if d.SandboxID == s.subject.SandboxID || d.SandboxID == s.neighbour.SandboxID {
			found++
		}
	}
	equal(t, 2, found, "sandboxes of the suite in the list")
}

func listPages(t T, s *Suite) {
	mark := strconv.FormatInt(time.Now().UnixNano(), 36)
	var made []string
	for range 3 {
		box, kill := s.create(t, "/v2/sandboxes", map[string]any{"metadata": map[string]string{"mark": mark}, "timeout": 60})
		defer kill()
		made = append(made, box.SandboxID)
	}
	for _, order := range []string{"asc", "desc"} {
		var found []string
		next := ""
		for page := 0; page == 0 || next != ""; page++ {
			query := url.Values{"limit": {"2"}, "order": {order}, "metadata": {"mark=" + mark}}
			if next != "" {
				query.Set("nextToken", next)
			}
			got := s.expect(t, 200, call{method: "GET", path: "/v2/sandboxes?" + query.Encode(), header: s.key()})
			equal(t, "3", got.header.Get("X-Total-Running"), "X-Total-Running")
			for _, d := range decode[[]detail](t, got.body) {
				found = append(found, d.SandboxID)
			}
			next = got.header.Get("X-Next-Token")
			that(t, page < 3, "the pages do not end")
			if page >= 3 {
				return
			}
		}
		want := made
		if order == "desc" {
			want = []string{made[2], made[1], made[0]}
		}
		equal(t, want, found, "order "+order)
	}
}

func listEncodings(t T, s *Suite) {
	key, value := "a b", "c&d=é%+"
	box, kill := s.create(t, "/v2/sandboxes", map[string]any{"metadata": map[string]string{key: value, "plain": "value"}, "timeout": 60})
	defer kill()
	// escaped is what the clients' encodeURIComponent makes of a text.
	escaped := func(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }
	thrice := escaped(escaped(escaped(key)) + "=" + escaped(escaped(value)))
	for _, filter := range []string{thrice, "plain=value", "plain%3Dvalue", thrice + "%26plain%3Dvalue"} {
		listed := decode[[]detail](t, s.expect(t, 200, call{method: "GET", path: "/v2/sandboxes?state=running&metadata=" + filter, header: s.key()}).body)
		that(t, len(listed) == 1 && listed[0].SandboxID == box.SandboxID, "metadata=%s finds %v", filter, listed)
	}
	for _, query := range []string{"state=running,paused", "state=running&state=paused", "state=running%2Cpaused"} {
		listed := decode[[]detail](t, s.expect(t, 200, call{method: "GET", path: "/v2/sandboxes?" + query + "&metadata=" + thrice, header: s.key()}).body)
		equal(t, 1, len(listed), query)
	}
}

func connectExtends(t T, s *Suite) {
	box, kill := s.create(t, "/v2/sandboxes", map[string]any{"timeout": 120})
	defer kill()
	before := s.detail(t, box.SandboxID).EndAt
	got := s.expect(t, 200, s.post("/sandboxes/"+box.SandboxID+"/connect", `{"timeout":10}`))
	equal(t, box.EnvdAccessToken, decode[sandbox](t, got.body).EnvdAccessToken, "envdAccessToken")
	equal(t, before, s.detail(t, box.SandboxID).EndAt, "the end after a shorter time")
	s.expect(t, 200, s.post("/sandboxes/"+box.SandboxID+"/connect", `{"timeout":600}`))
	about(t, s.detail(t, box.SandboxID), 600)
}

func connectV2(t T, s *Suite) {
	for _, body := range []string{"", "{}", `{"timeout":10}`} {
		got := s.expect(t, 200, s.post("/v2/sandboxes/"+s.neighbour.SandboxID+"/connect", body))
		equal(t, s.neighbour.SandboxID, decode[sandbox](t, got.body).SandboxID, "sandboxID")
	}
}

// connectWithHeaders is what some Python clients send: the headers of the daemon on a call of the API.
func connectWithHeaders(t T, s *Suite) {
	c := s.post("/sandboxes/"+s.neighbour.SandboxID+"/connect", `{"timeout":10}`)
	c.header.Set("E2b-Sandbox-Id", s.neighbour.SandboxID)
	c.header.Set("E2b-Sandbox-Port", "49983")
	got := s.expect(t, 200, c)
	equal(t, s.neighbour.SandboxID, decode[sandbox](t, got.body).SandboxID, "sandboxID")
}

// resumeRunning is how clients 2.0 to 2.5 find out that there is no sandbox to connect to.
func resumeRunning(t T, s *Suite) {
	s.expect(t, 409, s.post("/sandboxes/"+s.neighbour.SandboxID+"/resume", `{"timeout":60}`))
	s.expect(t, 404, s.post("/sandboxes/i00000000000000000000/resume", `{"timeout":60}`))
}

func timeoutMoves(t T, s *Suite) {
	box, kill := s.create(t, "/v2/sandboxes", map[string]any{})
	defer kill()
	for _, seconds := range []int{1000, 30} {
		got := s.expect(t, 204, s.post("/sandboxes/"+box.SandboxID+"/timeout", fmt.Sprintf(`{"timeout":%d}`, seconds)))
		equal(t, 0, len(got.body), "length of the body")
		about(t, s.detail(t, box.SandboxID), seconds)
	}
	s.expect(t, 204, s.post("/sandboxes/"+box.SandboxID+"/timeout", `{"timeout":999999}`))
	that(t, s.detail(t, box.SandboxID).EndAt.After(time.Now().Add(30*time.Minute)), "a time past the maximum is cut to it")
}

func timeoutZero(t T, s *Suite) {
	box, kill := s.create(t, "/v2/sandboxes", map[string]any{})
	defer kill()
	s.expect(t, 204, s.post("/sandboxes/"+box.SandboxID+"/timeout", `{"timeout":0}`))
	within(t, 5*time.Second, "the sandbox is gone", func() bool {
		return s.do(t, call{method: "GET", path: "/sandboxes/" + box.SandboxID, header: s.key()}).status == 404
	})
}

func refreshes(t T, s *Suite) {
	box, kill := s.create(t, "/v2/sandboxes", map[string]any{"timeout": 120})
	defer kill()
	before := s.detail(t, box.SandboxID).EndAt
	for _, body := range []string{`{"duration":0}`, `{"duration":20}`, "{}", ""} {
		s.expect(t, 204, s.post("/sandboxes/"+box.SandboxID+"/refreshes", body))
	}
	equal(t, before, s.detail(t, box.SandboxID).EndAt, "the end after shorter times")
	s.expect(t, 204, s.post("/sandboxes/"+box.SandboxID+"/refreshes", `{"duration":600}`))
	about(t, s.detail(t, box.SandboxID), 600)
}

func killTwice(t T, s *Suite) {
	box, kill := s.create(t, "/v2/sandboxes", map[string]any{})
	kill()
	got := s.expect(t, 404, call{method: "DELETE", path: "/sandboxes/" + box.SandboxID, header: s.key()})
	equal(t, 404, decode[struct{ Code int }](t, got.body).Code, "code in the body, which clients decide by")
	got = s.expect(t, 502, call{method: "GET", path: "/health", header: routeTo(box), toSandbox: true})
	equal(t, fmt.Sprintf(`{"code":502,"message":"The sandbox was not found","sandboxId":%q}`, box.SandboxID),
		encode(decode[map[string]any](t, got.body)), "its envd's /health")
}

func metrics(t T, s *Suite) {
	var samples []map[string]any
	within(t, 40*time.Second, "there is a sample", func() bool {
		samples = decode[[]map[string]any](t, s.expect(t, 200, call{method: "GET", path: "/sandboxes/" + s.subject.SandboxID + "/metrics", header: s.key()}).body)
		return len(samples) > 0
	})
	for _, name := range []string{"timestamp", "timestampUnix", "cpuCount", "cpuUsedPct", "memUsed", "memTotal", "memCache", "diskUsed", "diskTotal"} {
		_, there := samples[0][name]
		that(t, there, "%s is missing, which clients require", name)
	}
	got := s.expect(t, 200, call{method: "GET", path: "/sandboxes/metrics?sandbox_ids=" + s.subject.SandboxID + ",iunknown0000000000000", header: s.key()})
	many := decode[struct{ Sandboxes map[string]map[string]any }](t, got.body).Sandboxes
	that(t, len(many) == 1 && many[s.subject.SandboxID] != nil, "metrics of many: %v", many)
}

func logs(t T, s *Suite) {
	s.run(t, shell("echo logged-output"))
	type page struct {
		Logs       []struct{ Line string }
		LogEntries []struct {
			Level, Message string
			Fields         map[string]string
		}
	}
	var got page
	within(t, 20*time.Second, "there are log entries", func() bool {
		got = decode[page](t, s.expect(t, 200, call{method: "GET", path: "/sandboxes/" + s.subject.SandboxID + "/logs?limit=1000", header: s.key()}).body)
		return len(got.Logs) > 0 && len(got.Logs) == len(got.LogEntries)
	})
	for _, entry := range got.Logs {
		line := decode[map[string]any](t, []byte(entry.Line))
		that(t, line["level"] != nil && line["message"] != nil, "a line without level or message: %s", entry.Line)
	}
	for _, direction := range []string{"forward", "backward"} {
		body := s.expect(t, 200, call{method: "GET", path: "/v2/sandboxes/" + s.subject.SandboxID + "/logs?limit=2&direction=" + direction, header: s.key()}).body
		entries := decode[page](t, body).Logs
		that(t, len(entries) > 0 && len(entries) <= 2, "v2 %s: %d entries", direction, len(entries))
	}
}

func teams(t T, s *Suite) {
	got := decode[[]struct {
		TeamID, Name, APIKey string
		IsDefault            bool
	}](t, s.expect(t, 200, call{method: "GET", path: "/teams", header: s.key()}).body)
	that(t, len(got) == 1 && got[0].TeamID != "" && got[0].APIKey == s.target.APIKey, "teams: got %d", len(got))
}

func preflight(t T, s *Suite) {
	header := http.Header{
		"Origin":                         {"https://example.com"},
		"Access-Control-Request-Method":  {"POST"},
		"Access-Control-Request-Headers": {"content-type,x-api-key,browser,lang,lang_version,package_version,publisher,sdk_runtime,system"},
	}
	got := s.do(t, call{method: "OPTIONS", path: "/v2/sandboxes", header: header})
	that(t, got.status == 200 || got.status == 204, "got status %d", got.status)
	that(t, got.header.Get("Access-Control-Allow-Origin") != "", "no Access-Control-Allow-Origin")
	allowed := strings.ToLower(got.header.Get("Access-Control-Allow-Headers"))
	for _, name := range []string{"x-api-key", "package_version", "sdk_runtime"} {
		that(t, allowed == "*" || strings.Contains(allowed, name), "header %s is not allowed: %s", name, allowed)
	}
}

func unknownFields(t T, s *Suite) {
	_, kill := s.create(t, "/v2/sandboxes", map[string]any{"noSuchField": map[string]any{"a": 1}, "mcp": nil, "timeout": 60})
	kill()
}

// within asks until the answer is yes, and fails the case when that takes too long.
func within(t T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !holds() {
		if time.Now().After(deadline) {
			t.Errorf("not within %v: %s", limit, what)
			t.FailNow()
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-t.Context().Done():
			t.Errorf("given up: %s", what)
			t.FailNow()
		}
	}
}
