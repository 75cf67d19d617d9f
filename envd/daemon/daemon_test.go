package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/envd/daemon"
)

const patience = 30 * time.Second

// running is a daemon with its two listeners.
type running struct {
	facade, loopback string
	state            string
	done             chan error
	cancel           context.CancelFunc
	deadline         chan struct{}
}

func run(t *testing.T, c envd.Config) *running {
	t.Helper()
	if c.DefaultUser == "" {
		c.DefaultUser = "root"
	}
	r := &running{state: filepath.Join(t.TempDir(), "e2b"), done: make(chan error, 1), deadline: make(chan struct{}, 1)}
	d, err := daemon.New(c, daemon.Options{StateDir: r.state, OnDeadline: func() { r.deadline <- struct{}{} }})
	require.NoError(t, err)
	listen := func() (net.Listener, string) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		return l, "http://" + l.Addr().String()
	}
	facade, facadeURL := listen()
	loopback, loopbackURL := listen()
	r.facade, r.loopback = facadeURL, loopbackURL
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.done <- d.Serve(ctx, facade, loopback)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return r
}

// answer is a response, read whole.
type answer struct {
	status int
	header http.Header
	body   string
}

func ask(t *testing.T, method, url, body string, headers ...string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	resp, err := transport.RoundTrip(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return answer{resp.StatusCode, resp.Header, string(text)}
}

const list = "/process.Process/List"

var jsonCall = []string{"Content-Type", "application/json"}

func TestOrderOfChecks(t *testing.T) {
	r := run(t, envd.Config{AccessToken: "tok", Transport: "tr", Control: "ctl"})
	const noToken = `{"code":401,"message":"unauthorized access, please provide a valid access token or method signing if supported"}`
	const noUser = `{"code":"unauthenticated","message":"invalid username: 'x'"}`
	transport := []string{envd.HeaderTransport, "tr"}
	token := append([]string{"X-Access-Token", "tok"}, transport...)
	badUser := []string{"Authorization", "Basic eDo="}
	for _, c := range []struct {
		name, method, path string
		loopback           bool
		headers            []string
		status             int
		body               string
	}{
		{"transport missing", "GET", "/health", false, nil, 401, ""},
		{"transport wrong", "GET", "/health", false, []string{envd.HeaderTransport, "x"}, 401, ""},
		{"preflight before everything", "OPTIONS", "/health", false, []string{"Origin", "http://a", "Access-Control-Request-Method", "GET"}, 204, ""},
		{"health needs no token", "GET", "/health", false, transport, 204, ""},
		{"other method needs one", "POST", "/health", false, transport, 401, noToken},
		{"envs", "GET", "/envs", false, transport, 401, noToken},
		{"metrics", "GET", "/metrics", false, transport, 401, noToken},
		{"rpc", "POST", list, false, append(jsonCall, transport...), 401, noToken},
		{"wrong token", "GET", "/envs", false, append([]string{"X-Access-Token", "x"}, transport...), 401, noToken},
		{"token before user", "GET", "/envs", false, append(badUser, transport...), 401, noToken},
		{"files without signature", "GET", "/files?path=/x", false, transport, 401, ""},
		{"compose needs the token", "POST", "/files/compose", false, transport, 401, noToken},
		{"token", "GET", "/envs", false, token, 200, ""},
		{"unknown user on health", "GET", "/health", false, append(badUser, transport...), 401, noUser},
		{"unknown user on any route", "GET", "/nothing", false, append(badUser, token...), 401, noUser},
		{"unknown path", "GET", "/nothing", false, token, 404, "404 page not found\n"},
		{"unclean path", "GET", "//health", false, token, 404, "404 page not found\n"},
		{"root", "GET", "/", false, token, 404, "404 page not found\n"},
		{"unknown method of a service", "POST", "/process.Process/Nothing", false, append(jsonCall, token...), 404, "404 page not found\n"},
		{"internal without control", "GET", envd.RouteJournal, false, token, 404, "404 page not found\n"},
		{"internal with wrong control", "GET", envd.RouteJournal, false, append([]string{envd.HeaderControl, "x"}, token...), 404, "404 page not found\n"},
		{"control is enough", "GET", envd.RouteJournal, false, []string{envd.HeaderControl, "ctl"}, 200, "[]"},
		{"unknown internal", "GET", "/isthmus/nothing", false, []string{envd.HeaderControl, "ctl"}, 404, "404 page not found\n"},
		{"freeze is not offered", "POST", "/freeze", false, []string{envd.HeaderControl, "ctl"}, 404, "404 page not found\n"},
		{"control does not stand for the token", "GET", "/envs", false, []string{envd.HeaderControl, "ctl"}, 401, noToken},
		{"loopback needs no transport", "GET", "/health", true, nil, 204, ""},
		{"loopback needs the token", "GET", "/envs", true, nil, 401, noToken},
		{"loopback with token", "GET", "/envs", true, token, 200, ""},
		{"loopback has no internal routes", "GET", envd.RouteJournal, true, append([]string{envd.HeaderControl, "ctl"}, token...), 404, "404 page not found\n"},
		{"nor init", "POST", envd.RouteInit, true, append([]string{envd.HeaderControl, "ctl"}, token...), 404, "404 page not found\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := r.facade
			if c.loopback {
				base = r.loopback
			}
			got := ask(t, c.method, base+c.path, "{}", c.headers...)
			require.Equal(t, c.status, got.status, got.body)
			if c.body != "" {
				require.Equal(t, c.body, got.body)
			}
		})
	}
}

func TestWithoutSecretsClientsAreFreeAndInternalRoutesShut(t *testing.T) {
	r := run(t, envd.Config{})
	require.Equal(t, 200, ask(t, "GET", r.facade+"/envs", "").status)
	require.Equal(t, 404, ask(t, "GET", r.facade+envd.RouteJournal, "", envd.HeaderControl, "").status)
}

func TestWireOfCalls(t *testing.T) {
	r := run(t, envd.Config{})
	frame := func(text string) string {
		return string([]byte{0, 0, 0, 0, byte(len(text))}) + text
	}
	stream := []string{"Content-Type", "application/connect+json"}
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		want                     string
	}{
		{"unary", "POST", list, "{}", jsonCall, 200, "{}"},
		{"unknown fields", "POST", list, `{"x":1}`, jsonCall, 200, "{}"},
		{"bad json", "POST", list, `{`, jsonCall, 400, `"code":"invalid_argument"`},
		{"get", "GET", list, "", nil, 405, ""},
		{"content type", "POST", list, "{}", []string{"Content-Type", "text/plain"}, 415, ""},
		{"version", "POST", list, "{}", append([]string{"Connect-Protocol-Version", "2"}, jsonCall...), 400, `"code":"invalid_argument"`},
		{"timeout not a number", "POST", list, "{}", append([]string{"Connect-Timeout-Ms", "x"}, jsonCall...), 400, `"code":"invalid_argument"`},
		{"not found", "POST", "/process.Process/SendSignal", `{"process":{"pid":999999},"signal":9}`, jsonCall, 404,
			`{"code":"not_found","message":"process with pid 999999 not found"}`},
		{"snake case and enum by name", "POST", "/process.Process/SendSignal", `{"process":{"tag":"t"},"signal":"SIGNAL_SIGKILL"}`, jsonCall, 404,
			`{"code":"not_found","message":"process with tag t not found"}`},
		{"stream error", "POST", "/process.Process/Connect", frame(`{"process":{"pid":999999}}`), stream, 200,
			`{"error":{"code":"not_found","message":"process with pid 999999 not found"}}`},
		{"stream of an unknown user", "POST", "/process.Process/Start", frame(`{}`), append([]string{"Authorization", "Basic eDo="}, stream...), 200,
			`{"error":{"code":"unauthenticated","message":"invalid username: 'x'"}}`},
		{"time limit zero", "POST", "/process.Process/Start", frame(`{}`), append([]string{"Connect-Timeout-Ms", "0"}, stream...), 200, `"deadline_exceeded"`},
		{"time limit negative", "POST", "/process.Process/Start", frame(`{}`), append([]string{"Connect-Timeout-Ms", "-5"}, stream...), 200, `"deadline_exceeded"`},
		{"stream", "POST", "/process.Process/Start", frame(`{"process":{"cmd":"/bin/sh","args":["-c","exit 3"]},"stdin":false}`), stream, 200,
			`{"event":{"end":{"exitCode":3,"exited":true,"status":"exit status 3","error":"exit status 3"}}}`},
		{"defaults are left out", "POST", "/process.Process/Start", frame(`{"process":{"cmd":"true"}}`), stream, 200,
			`{"event":{"end":{"exited":true,"status":"exit status 0"}}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ask(t, c.method, r.facade+c.path, c.body, c.headers...)
			require.Equal(t, c.status, got.status, got.body)
			// The JSON library varies its spaces on purpose.
			require.Contains(t, strings.ReplaceAll(got.body, " ", ""), strings.ReplaceAll(c.want, " ", ""))
			if c.status == 415 {
				require.NotEmpty(t, got.header.Get("Accept-Post"))
				require.Empty(t, got.body)
			}
			if c.headers != nil && c.headers[len(c.headers)-1] == "application/connect+json" {
				require.Equal(t, "application/connect+json", got.header.Get("Content-Type"))
			}
		})
	}
}

func TestHealthEnvsMetrics(t *testing.T) {
	r := run(t, envd.Config{SandboxID: "sbx", TemplateID: "base", EnvVars: map[string]string{"A": "b", "E2B_SANDBOX": "no"}})
	got := ask(t, "GET", r.facade+"/health", "")
	require.Equal(t, 204, got.status)
	require.Equal(t, "no-store", got.header.Get("Cache-Control"))
	require.Equal(t, []string{""}, got.header["Content-Type"])
	require.Equal(t, 405, ask(t, "HEAD", r.facade+"/health", "").status)

	got = ask(t, "GET", r.facade+"/envs", "")
	require.JSONEq(t, `{"A":"b","E2B_SANDBOX":"true","E2B_SANDBOX_ID":"sbx","E2B_TEMPLATE_ID":"base"}`, got.body)
	require.Equal(t, "no-store", got.header.Get("Cache-Control"))

	var m map[string]float64
	require.NoError(t, json.Unmarshal([]byte(ask(t, "GET", r.facade+"/metrics", "").body), &m))
	for _, name := range []string{"ts", "cpu_count", "mem_total", "mem_used", "mem_total_mib", "disk_total", "disk_used"} {
		require.Positive(t, m[name], name)
	}
	require.Contains(t, m, "cpu_used_pct")
	require.Contains(t, m, "mem_cache")

	text, err := os.ReadFile(filepath.Join(r.state, ".E2B_SANDBOX_ID"))
	require.NoError(t, err)
	require.Equal(t, "sbx", string(text))
}

func TestCORS(t *testing.T) {
	r := run(t, envd.Config{})
	got := ask(t, "OPTIONS", r.facade+"/files", "", "Origin", "http://a.example",
		"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type,x-access-token")
	require.Equal(t, 204, got.status)
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Methods": "POST",
		"Access-Control-Allow-Headers": "content-type,x-access-token", "Access-Control-Max-Age": "7200",
	} {
		require.Equal(t, want, got.header.Get(name), name)
	}
	got = ask(t, "OPTIONS", r.facade+"/files", "", "Origin", "http://a.example", "Access-Control-Request-Method", "TRACE")
	require.Empty(t, got.header.Get("Access-Control-Allow-Origin"))
	got = ask(t, "GET", r.facade+"/health", "", "Origin", "http://a.example")
	require.Equal(t, "*", got.header.Get("Access-Control-Allow-Origin"))
	require.Contains(t, got.header.Get("Access-Control-Expose-Headers"), "Grpc-Status")
	require.Equal(t, "Origin", got.header.Get("Vary"))
	require.Empty(t, ask(t, "GET", r.facade+"/health", "").header.Get("Access-Control-Allow-Origin"))
}

func TestInit(t *testing.T) {
	r := run(t, envd.Config{Control: "ctl", EnvVars: map[string]string{"OLD": "1"}})
	call := func(body string) answer {
		return ask(t, "POST", r.facade+envd.RouteInit, body, envd.HeaderControl, "ctl")
	}
	envs := func() string {
		return ask(t, "GET", r.facade+"/envs", "", "X-Access-Token", "tok").body
	}
	got := call(`{}`)
	require.Equal(t, 204, got.status)
	require.Equal(t, "0.6.13", got.header.Get("X-Envd-Version"))
	require.Equal(t, "no-store", got.header.Get("Cache-Control"))
	require.Contains(t, envs(), `"OLD":"1"`, "absent variables stay")

	require.Equal(t, 204, call(`{"accessToken":"tok","envVars":{"NEW":"2"},"timestamp":"2026-01-02T00:00:00Z"}`).status)
	require.NotContains(t, envs(), "OLD")
	require.Contains(t, envs(), `"NEW":"2"`)
	for _, c := range []struct {
		body   string
		status int
		text   string
	}{
		{`{"accessToken":"tok"}`, 204, ""},
		{`{}`, 401, "access token reset not authorized\n"},
		{`{"accessToken":"other"}`, 401, "access token validation failed\n"},
		{`{"accessToken":""}`, 400, ""},
		{`{`, 400, ""},
		{`{"accessToken":"tok","envVars":{"STALE":"3"},"timestamp":"2026-01-01T00:00:00Z"}`, 204, ""},
		{`{"accessToken":"tok","envVars":{"LONG":"` + strings.Repeat("x", envd.MaxVariable) + `"}}`, 400, "envVars: LONG and its value are longer than the 131071 bytes that a program can be given\n"},
		{`{"accessToken":"tok","volumeMounts":[{"path":"/x"}]}`, 400, "volumeMounts is not supported by this daemon\n"},
	} {
		got := call(c.body)
		require.Equal(t, c.status, got.status, c.body)
		require.Equal(t, c.text, got.body, c.body)
	}
	require.NotContains(t, envs(), "STALE")
	require.Equal(t, 401, ask(t, "GET", r.facade+"/envs", "").status, "the token is in force")
	require.Equal(t, 204, call(`{"accessToken":"tok","defaultUser":"gone"}`).status)
	start := ask(t, "POST", r.facade+"/process.Process/Start", "\x00\x00\x00\x00\x02{}", "X-Access-Token", "tok", "Content-Type", "application/connect+json")
	require.Contains(t, start.body, "invalid default user: 'gone'")
	require.Equal(t, 204, ask(t, "GET", r.facade+"/health", "").status, "a route that needs no user goes on")
}

func TestDeadline(t *testing.T) {
	r := run(t, envd.Config{Control: "ctl", Deadline: time.Now().Add(time.Hour)})
	move := func(body string) int {
		return ask(t, "PUT", r.facade+envd.RouteDeadline, body, envd.HeaderControl, "ctl").status
	}
	for _, body := range []string{``, `{}`, `{"deadline":"tomorrow"}`, `[]`} {
		require.Equal(t, 400, move(body), body)
	}
	require.Equal(t, 405, ask(t, "GET", r.facade+envd.RouteDeadline, "", envd.HeaderControl, "ctl").status)
	require.Equal(t, 204, move(`{"deadline":"2999-01-01T00:00:00Z"}`))
	require.Equal(t, 204, move(`{"deadline":"0001-01-01T00:00:00Z"}`))
	select {
	case <-r.deadline:
		t.Fatal("none has passed")
	default:
	}
	require.Equal(t, 204, move(`{"deadline":"`+time.Now().Add(100*time.Millisecond).Format(time.RFC3339Nano)+`"}`))
	select {
	case <-r.deadline:
	case <-time.After(patience):
		t.Fatal("the deadline has passed and nobody was told")
	}
}

func TestJournal(t *testing.T) {
	r := run(t, envd.Config{Control: "ctl"})
	body := `{"process":{"cmd":"/bin/sh","args":["-c","echo hidden$((1+1)); exit 3"]},"stdin":false}`
	ask(t, "POST", r.facade+"/process.Process/Start", string([]byte{0, 0, 0, 0, byte(len(body))})+body, "Content-Type", "application/connect+json")
	read := func(query string) (entries []envd.JournalEntry) {
		got := ask(t, "GET", r.facade+envd.RouteJournal+query, "", envd.HeaderControl, "ctl")
		require.NoError(t, json.Unmarshal([]byte(got.body), &entries))
		require.NotContains(t, got.body, "hidden2")
		return entries
	}
	all := read("")
	require.Len(t, all, 2)
	require.Equal(t, "3", all[1].Fields["exit_code"])
	require.Len(t, read("?after=1"), 1)
	require.Empty(t, read("?after=2"))
	require.Equal(t, 400, ask(t, "GET", r.facade+envd.RouteJournal+"?after=x", "", envd.HeaderControl, "ctl").status)
}

func TestServeEndsEverything(t *testing.T) {
	r := run(t, envd.Config{})
	body := `{"process":{"cmd":"/bin/sh","args":["-c","sleep 1000"]},"stdin":false}`
	req, err := http.NewRequestWithContext(t.Context(), "POST", r.facade+"/process.Process/Start",
		bytes.NewReader(append([]byte{0, 0, 0, 0, byte(len(body))}, body...)))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/connect+json")
	resp, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	first := make([]byte, 64)
	n, err := resp.Body.Read(first)
	require.NoError(t, err)
	var started struct {
		Event struct{ Start struct{ PID int } }
	}
	require.NoError(t, json.Unmarshal(first[5:n], &started))
	r.cancel()
	select {
	case err := <-r.done:
		require.NoError(t, err)
	case <-time.After(patience):
		t.Fatal("Serve does not return")
	}
	rest, err := io.ReadAll(resp.Body)
	require.Error(t, err, "the stream breaks and does not end in order: %q", rest)
	require.NoDirExists(t, "/proc/"+strconv.Itoa(started.Event.Start.PID))
}
