package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/envd/signature"
	"github.com/isthmus/isthmus/envd/tunnel"
	"github.com/isthmus/isthmus/server/edge"
	"github.com/isthmus/isthmus/server/fleet"
	"github.com/isthmus/isthmus/server/gateway"
)

const (
	goneBody = `{"sandboxId":"` + sandboxID + `","message":"The sandbox was not found","code":502}`
	firefox  = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	pages    = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
)

func TestAnswersOfTheGateway(t *testing.T) {
	fail := func(kind adapters.Kind) error {
		return &adapters.Error{Kind: kind, Message: "why", RetryAfter: 1500 * time.Millisecond}
	}
	stream := []string{"Content-Type", "application/connect+json"}
	unary := []string{"Content-Type", "application/json"}
	const start = "/process.Process/Start"
	tests := []struct {
		name     string
		routeErr error
		port     string
		path     string
		headers  []string
		status   int
		body     string
	}{
		{"no such sandbox", fail(adapters.KindNotFound), envdPort, "/health", nil, 502, goneBody},
		{"no such sandbox, unary", fail(adapters.KindNotFound), envdPort, "/process.Process/List", unary, 502, goneBody},
		{"no such sandbox, stream", fail(adapters.KindNotFound), envdPort, start, stream, 502, goneBody},
		{"no such sandbox, application", fail(adapters.KindNotFound), "8080", "/", nil, 502, goneBody},
		{"closed port", nil, "81", "/", nil, 502, `{"sandboxId":"` + sandboxID + `","message":"The sandbox is running but port is not open","port":81,"code":502}`},
		{"changing", fail(adapters.KindPrecondition), envdPort, "/health", nil, 409, `{"sandboxId":"` + sandboxID + `","message":"why","code":409}`},
		{"changing, unary", fail(adapters.KindPrecondition), envdPort, start, unary, 400, `{"code":"failed_precondition","message":"why"}`},
		{"limited", fail(adapters.KindRateLimited), "8080", "/", nil, 429, `{"sandboxId":"` + sandboxID + `","message":"why","code":429}`},
		{"limited, stream", fail(adapters.KindRateLimited), envdPort, start, stream, 200, "\x02\x00\x00\x007" + `{"error":{"code":"resource_exhausted","message":"why"}}`},
		{"unreachable", fail(adapters.KindUnavailable), envdPort, "/health", nil, 500, `{"sandboxId":"` + sandboxID + `","message":"why","code":500}`},
		{"unreachable, unary", fail(adapters.KindUnavailable), envdPort, start, unary, 500, `{"code":"internal","message":"why"}`},
		{"unreachable, stream", fail(adapters.KindCredentials), envdPort, start, stream, 200, "\x02\x00\x00\x00-" + `{"error":{"code":"internal","message":"why"}}`},
		{"unreachable, RPC path of an application", fail(adapters.KindUnavailable), "8080", start, unary, 500, `{"sandboxId":"` + sandboxID + `","message":"why","code":500}`},
		{"late", fail(adapters.KindUnknownOutcome), envdPort, "/files", nil, 500, `{"sandboxId":"` + sandboxID + `","message":"why","code":500}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, tell)
			l.routeErr = test.routeErr
			c := l.http1()
			r := l.request(c, "POST", test.path, test.port, strings.NewReader("{}"))
			for i := 0; i < len(test.headers); i += 2 {
				r.Header.Set(test.headers[i], test.headers[i+1])
			}
			answer, body := l.do(c, r)
			require.Equal(t, test.status, answer.StatusCode)
			require.Equal(t, test.body, strings.TrimSuffix(body, "\n"))
			require.Equal(t, "*", answer.Header.Get("Access-Control-Allow-Origin"))
			if test.status == 429 {
				require.Equal(t, "2", answer.Header.Get("Retry-After"))
			}
			if len(test.headers) > 0 && test.status != 502 && test.port == envdPort {
				require.Equal(t, test.headers[1], answer.Header.Get("Content-Type"))
			}
		})
	}
}

func TestUnknownFailureSaysNothingOfItsCause(t *testing.T) {
	l := newLab(t, tell)
	l.routeErr = errors.New("open /secret/path: no")
	c := l.http1()
	answer, body := l.do(c, l.request(c, "GET", "/health", envdPort, nil))
	require.Equal(t, 500, answer.StatusCode)
	require.NotContains(t, body, "secret")
}

func TestDaemonThatCannotBeReached(t *testing.T) {
	tests := []struct {
		name, port string
		ends       bool
		status     int
		message    string
	}{
		{"and stays", envdPort, false, 500, "It is kept: try again"},
		{"because its sandbox ends", envdPort, true, 502, "The sandbox was not found"},
		{"while an application is asked for", "8080", false, 502, "ended before there was an answer"},
		{"while an application is asked for and its sandbox ends", "8080", true, 502, "The sandbox was not found"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, tell)
			refuse := func(context.Context) (net.Conn, error) {
				if test.ends {
					time.AfterFunc(20*time.Millisecond, func() { close(l.gone) })
				}
				return nil, errors.New("dial unix /secret/path: connection refused")
			}
			l.route.Endpoint.Dial = refuse
			l.app.path = "/nowhere"
			if test.ends && test.port == "8080" {
				time.AfterFunc(20*time.Millisecond, func() { close(l.gone) })
			}
			c := l.http1()
			answer, body := l.do(c, l.request(c, "GET", "/health", test.port, nil))
			require.Equal(t, test.status, answer.StatusCode)
			require.Contains(t, body, test.message)
			require.NotContains(t, body, "secret")
		})
	}
}

func TestPortIsTriedAgainForAMoment(t *testing.T) {
	l := newLab(t, tell)
	var tries atomic.Int64
	g := gateway.New(gateway.Config{Sandboxes: l, Log: slog.New(slog.DiscardHandler),
		DialPort: func(ctx context.Context, _ *fleet.Route, _ uint16) (net.Conn, error) {
			if tries.Add(1) < 3 {
				return nil, tunnel.ErrPortClosed
			}
			return l.app.dial(ctx)
		}})
	defer g.Close()
	w := httptest.NewRecorder()
	g.ServeSandbox(w, httptest.NewRequest("GET", "/", nil), sandboxID, 3000)
	require.Equal(t, 200, w.Code)
	require.EqualValues(t, 3, tries.Load())
}

func TestPageForAPerson(t *testing.T) {
	tests := []struct {
		name, agent, accept, mode string
		page                      bool
	}{
		{"navigation", firefox, pages, "navigate", true},
		{"old browser", firefox, pages, "", true},
		{"browser that says nothing", firefox, "", "", true},
		{"script", firefox, pages, "cors", false},
		{"script of the same origin", firefox, pages, "same-origin", false},
		{"script that accepts all", firefox, "*/*", "", false},
		{"JSON before HTML", firefox, "text/html;q=0.5,application/json", "navigate", false},
		{"HTML before JSON", firefox, "text/html,application/json;q=0.9", "navigate", true},
		{"HTML refused", firefox, "text/html;q=0", "navigate", false},
		{"curl", "curl/8.0", pages, "", false},
		{"SDK", "e2b-python-sdk/2.63.0", "*/*", "", false},
		{"nobody", "", "", "", false},
	}
	l := newLab(t, tell)
	c := l.http1()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := l.request(c, "GET", "/<script>", "81", nil)
			r.Header.Set("User-Agent", test.agent)
			r.Header.Set("Accept", test.accept)
			if test.mode != "" {
				r.Header.Set("Sec-Fetch-Mode", test.mode)
			}
			answer, body := l.do(c, r)
			require.Equal(t, 502, answer.StatusCode)
			require.Contains(t, body, "The sandbox is running but port is not open")
			if test.page {
				require.Equal(t, "text/html; charset=utf-8", answer.Header.Get("Content-Type"))
				require.Contains(t, body, "port 81")
			} else {
				require.True(t, json.Valid([]byte(body)), body)
			}
		})
	}
}

func TestPageEscapes(t *testing.T) {
	l := newLab(t, tell)
	l.routeErr = adapters.Errorf(adapters.KindPrecondition, "<script>&\"'")
	c := l.http1()
	r := l.request(c, "GET", "/", "81", nil)
	r.Header.Set("User-Agent", firefox)
	r.Header.Set("Accept", pages)
	_, body := l.do(c, r)
	require.Contains(t, body, "&lt;script&gt;&amp;&#34;&#39;")
	require.NotContains(t, body, "<script>")
}

func TestTrafficToken(t *testing.T) {
	const missing = "Sandbox is secured with traffic access token. Token header 'e2b-traffic-access-token' is missing"
	const invalid = "Provided token in header 'e2b-traffic-access-token' is invalid"
	tests := []struct {
		name, port, sent string
		status           int
		message          string
	}{
		{"missing", "8080", "", 403, missing},
		{"wrong", "8080", "wrong", 403, invalid},
		{"a part of it", "8080", "traffic-toke", 403, invalid},
		{"right", "8080", "traffic-token", 200, ""},
		{"closed port with the token", "81", "traffic-token", 502, "port is not open"},
		{"closed port without", "81", "", 403, missing},
		{"never for the daemon", envdPort, "", 200, ""},
	}
	l := newLab(t, tell)
	l.route.TrafficToken = "traffic-token"
	for _, c := range l.clients() {
		for _, test := range tests {
			t.Run(c.name+", "+test.name, func(t *testing.T) {
				r := l.request(c, "GET", "/", test.port, nil)
				if test.sent != "" {
					r.Header.Set("e2b-traffic-access-token", test.sent)
				}
				answer, body := l.do(c, r)
				require.Equal(t, test.status, answer.StatusCode)
				require.Contains(t, body, test.message)
				require.NotContains(t, body, "traffic-token\"", "the token itself")
			})
		}
	}
}

func TestPreflight(t *testing.T) {
	l := newLab(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Answered-By", "sandbox") })
	l.route.TrafficToken = "traffic-token"
	c := l.http1()
	preflight := func(port, path string) *http.Response {
		r := l.request(c, "OPTIONS", path, port, nil)
		r.Header.Set("Origin", "https://page.example")
		r.Header.Set("Access-Control-Request-Method", "PUT")
		r.Header.Set("Access-Control-Request-Headers", "x-access-token")
		answer, _ := l.do(c, r)
		return answer
	}
	for _, port := range []string{"8080", "81"} { // the token is missing, nothing listens
		answer := preflight(port, "/")
		require.Equal(t, 204, answer.StatusCode)
		require.Equal(t, "*", answer.Header.Get("Access-Control-Allow-Origin"))
		require.Equal(t, "PUT", answer.Header.Get("Access-Control-Allow-Methods"))
		require.Equal(t, "x-access-token", answer.Header.Get("Access-Control-Allow-Headers"))
	}
	require.Equal(t, "sandbox", preflight(envdPort, "/").Header.Get("Answered-By"))
	require.Equal(t, 404, preflight(envdPort, "/init").StatusCode)
}

func TestInternalRoutes(t *testing.T) {
	l := newLab(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	internal := []string{
		"/init", "/init/", "//init", "/./init", "/a/../init", "/%69nit", "/%2569nit", "/%252569nit", "/a/%2e%2e/init", "/%2Finit", "/%2finit",
		"/a%2F..%2Finit", "/%2e/init", "/init%2F", "/../init", "/freeze", "/unfreeze", "/collapse", "/fsfreeze", "/fsthaw", "/upgrade",
		"/isthmus", "/isthmus/", "/isthmus/tunnel/22", "//isthmus//tunnel/22", "/isthmus/x/../journal", "/x/../isthmus/deadline",
		"/%69sthmus/journal", "/%2569sthmus/journal", "/isthmus%2Fjournal", "/isthmus%252Fjournal", "/init?x=1",
		"/%" + strings.Repeat("25", 20) + "69nit",
	}
	open := []string{"/", "/health", "/initial", "/files/init", "/isthmus-x", "/INIT", "/process.Process/Start", "/%", "/100%25", "/init;x"}
	get := func(method, path string) *http.Response {
		text := method + " " + path + " HTTP/1.1\r\n" + toEnvd + "Connection: close\r\n\r\n"
		conn := l.raw(text)
		return readAnswer(t, conn)
	}
	for _, path := range internal {
		for _, method := range []string{"GET", "POST", "OPTIONS", "PURGE"} {
			answer := get(method, path)
			require.Equal(t, 404, answer.StatusCode, path)
		}
	}
	for _, path := range open {
		answer := get("POST", path)
		if path == "/%" {
			require.Equal(t, 400, answer.StatusCode)
			continue
		}
		require.Equal(t, http.StatusTeapot, answer.StatusCode, path)
	}
	answer := get("GET", "/x/..//init?a=b")
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.JSONEq(t, `{"message":"This endpoint is reserved for the E2B control plane and is not reachable through the sandbox URL","path":"/init","code":404}`, string(body))
	require.Equal(t, http.StatusTeapot, readAnswer(t, l.raw("GET /init HTTP/1.1\r\n"+toApp+"\r\n")).StatusCode, "an application may have that path")
}

func TestSignedURLs(t *testing.T) {
	l := newLab(t, tell)
	c := l.http1()
	sign := func(operation signature.Operation, token string) string {
		claim := signature.Claim{Path: "a b", User: "user", Operation: operation}
		return "/files?path=a+b&username=user&signature=" + strings.ReplaceAll(strings.ReplaceAll(claim.Sign(token), "+", "%2B"), "/", "%2F")
	}
	ask := func(method, target string) (*http.Response, string) {
		r := l.request(c, method, target, envdPort, nil)
		r.Header.Del(edge.HeaderSandboxID)
		r.Header.Del(edge.HeaderSandboxPort)
		return l.do(c, r)
	}
	read, write := sign(signature.Read, "envd-token"), sign(signature.Write, "envd-token")
	tests := []struct {
		name, method, target string
		status               int
		body                 string
	}{
		{"read", "GET", read, 200, `"transport-secret"`},
		{"write", "POST", write, 200, `"Method":"POST"`},
		{"read with a signature for writing", "GET", write, 401, `{"message":"invalid signature","code":401}`},
		{"write with a signature for reading", "POST", read, 401, "invalid signature"},
		{"other path", "GET", strings.Replace(read, "a+b", "b", 1), 401, "invalid signature"},
		{"other user", "GET", strings.Replace(read, "user&", "root&", 1), 401, "invalid signature"},
		{"empty", "GET", "/files?signature=", 401, "invalid signature"},
		{"of a sandbox without a token", "GET", sign(signature.Read, ""), 401, "invalid signature"},
		{"bad expiration", "GET", read + "&signature_expiration=soon", 400, "signature_expiration"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			answer, body := ask(test.method, test.target)
			require.Equal(t, test.status, answer.StatusCode, body)
			require.Contains(t, body, test.body)
		})
	}
	t.Run("guessing is slowed down", func(t *testing.T) {
		var refused *http.Response
		for range 60 {
			if answer, _ := ask("GET", "/files?signature=v1_guess"); answer.StatusCode == 429 {
				refused = answer
			}
		}
		require.NotNil(t, refused)
		require.Equal(t, "1", refused.Header.Get("Retry-After"))
		for _, good := range []struct{ method, target string }{{"GET", read}, {"POST", write}} {
			answer, body := ask(good.method, good.target)
			require.Equal(t, 200, answer.StatusCode, "another client of this address: %s", body)
		}
	})
}

func TestEndedSandboxLeavesNothing(t *testing.T) {
	l := newLab(t, tell)
	c := l.http1()
	for _, port := range []string{envdPort, "8080"} {
		answer, _ := l.do(c, l.request(c, "GET", "/", port, nil))
		require.Equal(t, 200, answer.StatusCode)
	}
	close(l.gone)
	for _, b := range []*backend{l.envd, l.app} {
		require.Eventually(t, func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return len(b.conns) == 0
		}, patience, 5*time.Millisecond, "connections are kept")
	}
	answer, _ := l.do(c, l.request(c, "GET", "/", envdPort, nil))
	require.Equal(t, 502, answer.StatusCode, "although a route is still found")
}

var _ edge.Gateway = (*gateway.Gateway)(nil)

func TestTunnelReachesPorts(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	app := &http.Server{Handler: http.HandlerFunc(tell)}
	go func() { _ = app.Serve(listener) }()
	t.Cleanup(func() { _ = app.Close() })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())

	ends := tunnel.NewHandler()
	l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(envd.HeaderTransport) != "transport-secret" || r.Header.Get(envd.HeaderControl) != "control-secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		ends.ServeHTTP(w, r)
	})
	g := gateway.New(gateway.Config{Sandboxes: l, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(g.Close)
	for address, status := range map[net.Addr]int{listener.Addr(): 200, closed.Addr(): 502} {
		w := httptest.NewRecorder()
		g.ServeSandbox(w, httptest.NewRequest("POST", "/x", strings.NewReader("body")), sandboxID, uint16(address.(*net.TCPAddr).Port))
		require.Equal(t, status, w.Code, w.Body.String())
		require.NotContains(t, w.Body.String(), "-secret")
	}
}
