package wire

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

func edgeCases() []Case {
	return []Case{
		{"edge/a server inside, by headers and by host name", servers},
		{"edge/host names in every spelling", hostSpellings},
		{"edge/a closed port says so", closedPort},
		{"edge/preflight of a sandbox", sandboxPreflight},
		{"edge/preflight of a request by headers", headersPreflight},
		{"edge/answers to binary messages are binary", binaryCodec},
		{"edge/traffic token", trafficToken},
	}
}

// echo is a server that repeats the request line and the headers, started on a port of the subject.
func (s *Suite) echo(t T, address string, port int) {
	t.Helper()
	program := fmt.Sprintf(`
import http.server
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = (self.requestline + "\n" + str(self.headers)).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(text))); self.end_headers(); self.wfile.write(text)
    def log_message(self, *a): pass
http.server.HTTPServer((%q, %d), H).serve_forever()`, address, port)
	s.begin(t, command{cmd: "python3", args: []string{"-c", program}}).close()
}

// visit is a request to a port of the subject by headers.
func (s *Suite) visit(port int, path string) call {
	header := http.Header{"E2b-Sandbox-Id": {s.subject.SandboxID}, "E2b-Sandbox-Port": {fmt.Sprint(port)}}
	return call{method: "GET", path: path, header: header, toSandbox: true}
}

// visitHost is a request by a host name.
func visitHost(host, path string) call {
	return call{method: "GET", path: path, host: host, toSandbox: true}
}

func servers(t T, s *Suite) {
	for port, address := range map[int]string{18001: "0.0.0.0", 18002: "127.0.0.1"} {
		s.echo(t, address, port)
		within(t, 10*time.Second, "the server answers", func() bool { return s.do(t, s.visit(port, "/")).status == 200 })
		calls := []call{s.visit(port, "/a%20b;c?x=%zz&y=1;2")}
		if host := s.subject.host(port); host != "" {
			calls = append(calls, visitHost(host, "/a%20b;c?x=%zz&y=1;2"))
		}
		for _, c := range calls {
			got := string(s.expect(t, 200, c).body)
			that(t, strings.HasPrefix(got, "GET /a%20b;c?x=%zz&y=1;2 HTTP/1.1\n"), "the request line inside: %s", clip([]byte(got)))
			that(t, !strings.Contains(strings.ToLower(got), "isthmus"), "a header of the facade's own got inside: %s", got)
		}
	}
}

func hostSpellings(t T, s *Suite) {
	host := s.subject.host(49983)
	if host == "" {
		t.Logf("the server names no domain")
		return
	}
	name, port, _ := strings.Cut(host, ":")
	if port != "" {
		port = ":" + port
	}
	label, domain, _ := strings.Cut(name, ".")
	for _, spelling := range []string{name + port, strings.ToUpper(name) + port, label + "-6532622b." + domain + port, name + "." + port} {
		got := s.do(t, visitHost(spelling, "/health"))
		that(t, got.status/100 == 2, "host %s: status %d: %s", spelling, got.status, clip(got.body))
	}
}

func closedPort(t T, s *Suite) {
	got := s.expect(t, 502, s.visit(19999, "/"))
	equal(t, fmt.Sprintf(`{"code":502,"message":"The sandbox is running but port is not open","port":19999,"sandboxId":%q}`, s.subject.SandboxID),
		encode(decode[map[string]any](t, got.body)), "body")
	page := s.visit(19999, "/")
	page.header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/130.0 Safari/537.36")
	page.header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	got = s.expect(t, 502, page)
	that(t, strings.HasPrefix(got.header.Get("Content-Type"), "text/html"), "a browser gets %s", got.header.Get("Content-Type"))
	page.header.Set("Sec-Fetch-Mode", "cors")
	got = s.expect(t, 502, page)
	that(t, strings.HasPrefix(got.header.Get("Content-Type"), "application/json"), "a script gets %s", got.header.Get("Content-Type"))
}

func sandboxPreflight(t T, s *Suite) {
	c := call{method: "OPTIONS", path: "/process.Process/Start", toSandbox: true, host: s.subject.host(49983), header: http.Header{
		"Origin":                         {"https://example.com"},
		"Access-Control-Request-Method":  {"POST"},
		"Access-Control-Request-Headers": {"content-type,x-access-token,connect-protocol-version"},
	}}
	if c.host == "" {
		t.Logf("the server names no domain")
		return
	}
	got := s.do(t, c)
	that(t, got.status == 200 || got.status == 204, "got status %d", got.status)
	equal(t, "*", got.header.Get("Access-Control-Allow-Origin"), "Access-Control-Allow-Origin")
	that(t, strings.Contains(strings.ToLower(got.header.Get("Access-Control-Allow-Headers")), "x-access-token"), "allowed headers: %s", got.header.Get("Access-Control-Allow-Headers"))
}

// A page that is given one URL for all sandboxes names its sandbox by headers, which a preflight only announces.
func headersPreflight(t T, s *Suite) {
	asked := "connect-protocol-version,content-type,e2b-sandbox-id,e2b-sandbox-port,x-access-token"
	for _, path := range []string{"/process.Process/Start", "/files?path=a"} {
		got := s.expect(t, 204, call{method: "OPTIONS", path: path, toSandbox: true, header: http.Header{
			"Origin":                         {"https://example.com"},
			"Access-Control-Request-Method":  {"POST"},
			"Access-Control-Request-Headers": {asked},
		}})
		equal(t, "*", got.header.Get("Access-Control-Allow-Origin"), "Access-Control-Allow-Origin")
		equal(t, asked, strings.ToLower(got.header.Get("Access-Control-Allow-Headers")), "Access-Control-Allow-Headers")
	}
}

func binaryCodec(t T, s *Suite) {
	list := s.rpc("process.Process/List", "")
	list.header.Set("Content-Type", "application/proto")
	got := s.expect(t, 200, list)
	equal(t, "application/proto", got.header.Get("Content-Type"), "content type of a unary answer")
	// StartRequest{process: {cmd: "true"}}, which is field 1 of both messages.
	start := s.streamCall("process.Process/Start", envelope(flagData, "\x0a\x06\x0a\x04true"))
	start.header.Set("Content-Type", "application/connect+proto")
	got = s.expect(t, 200, start)
	equal(t, "application/connect+proto", got.header.Get("Content-Type"), "content type of a stream")
	first, err := readFrame(strings.NewReader(string(got.body)))
	must(t, err, "reading the stream")
	that(t, len(first.message) > 4 && first.message[0] == 0x0a, "the first message is no event: %x", first.message)
}

func trafficToken(t T, s *Suite) {
	box, kill := s.create(t, "/v2/sandboxes", map[string]any{"network": map[string]any{"allowPublicTraffic": false}, "timeout": 60})
	defer kill()
	that(t, box.TrafficAccessToken != "", "no trafficAccessToken")
	header := http.Header{"E2b-Sandbox-Id": {box.SandboxID}, "E2b-Sandbox-Port": {"18001"}}
	got := s.expect(t, 403, call{method: "GET", path: "/", header: header, toSandbox: true})
	equal(t, "Sandbox is secured with traffic access token. Token header 'e2b-traffic-access-token' is missing",
		decode[struct{ Message string }](t, got.body).Message, "message without a token")
	header.Set("E2b-Traffic-Access-Token", "wrong")
	s.expect(t, 403, call{method: "GET", path: "/", header: header, toSandbox: true})
	header.Set("E2b-Traffic-Access-Token", box.TrafficAccessToken)
	s.expect(t, 502, call{method: "GET", path: "/", header: header, toSandbox: true})
}
