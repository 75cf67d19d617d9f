package gateway_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// seen is what a backend tells of a request.
type seen struct {
	Method, URI, Host string
	Header            http.Header
	Body              string
}

func tell(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	_ = json.NewEncoder(w).Encode(seen{r.Method, r.RequestURI, r.Host, r.Header, string(body)})
}

func told(t *testing.T, body string) seen {
	var s seen
	require.NoError(t, json.Unmarshal([]byte(body), &s), body)
	return s
}

func TestRequestPassesUnchanged(t *testing.T) {
	l := newLab(t, tell)
	c := l.http1()
	base, err := url.Parse(c.base)
	require.NoError(t, err)
	targets := []string{
		"/", "//", "/a//b", "/a/../b", "/a%2Fb", "/a%3Ab", "/%E2%82%AC", "/a?", "/a?x=a;b", "/a?x=%zz&y=1", "/a?x=%", "/a?q=a+b%20c",
		"/a?path=%2Ftmp%2Fa%20b", "/~a/!$&'()*,=:@", "/files?path=a&path=b",
	}
	for _, port := range []string{envdPort, "8080"} {
		for _, target := range targets {
			t.Run(port+" "+target, func(t *testing.T) {
				r := l.request(c, "PATCH", "/", port, strings.NewReader("body"))
				r.URL = &url.URL{Scheme: "http", Host: base.Host, Opaque: "//" + base.Host + target}
				r.Header["X-Many"] = []string{"1", "2"}
				r.Header.Set("Authorization", "Basic dXNlcjo=")
				r.Header.Set("X-Access-Token", "envd-token")
				r.Header.Set("User-Agent", "")
				_, body := l.do(c, r)
				got := told(t, body)
				// The Go client repeats the authority in front of an opaque target; the wire is what counts.
				require.Equal(t, target, strings.TrimPrefix(got.URI, "http://"+base.Host))
				require.Equal(t, "PATCH", got.Method)
				require.Equal(t, "body", got.Body)
				require.Equal(t, base.Host, got.Host)
				require.Equal(t, []string{"1", "2"}, got.Header["X-Many"])
				require.Equal(t, "Basic dXNlcjo=", got.Header.Get("Authorization"))
				require.Equal(t, "envd-token", got.Header.Get("X-Access-Token"))
				require.NotContains(t, got.Header, "User-Agent")
				require.NotContains(t, got.Header, "Accept-Encoding")
			})
		}
	}
}

func TestSecretsOfTheFacade(t *testing.T) {
	l := newLab(t, tell)
	l.route.Endpoint.Header = http.Header{"Vendor-Auth": {"vendor-secret"}}
	for _, c := range l.clients() {
		for port, want := range map[string][2]string{envdPort: {"transport-secret", "vendor-secret"}, "8080": {}} {
			t.Run(c.name+" "+port, func(t *testing.T) {
				r := l.request(c, "GET", "/", port, nil)
				r.Header.Set("Isthmus-Transport", "forged")
				r.Header.Set("Isthmus-Control", "forged")
				r.Header.Set("E2b-Traffic-Access-Token", "traffic")
				r.Header.Set("X-Forwarded-For", "203.0.113.9")
				if c.name == "h1" { // makes a naive proxy drop what it adds
					r.Header.Set("Connection", "Isthmus-Transport")
				}
				_, body := l.do(c, r)
				got := told(t, body)
				require.Equal(t, want[0], got.Header.Get("Isthmus-Transport"))
				require.Equal(t, want[1], got.Header.Get("Vendor-Auth"))
				require.NotContains(t, body, "forged")
				require.NotContains(t, body, "control-secret")
				require.NotContains(t, got.Header, "E2b-Traffic-Access-Token")
				require.Equal(t, "203.0.113.9, 127.0.0.1", got.Header.Get("X-Forwarded-For"))
				proto := "http"
				if c.name == "h2" {
					proto = "https"
				}
				require.Equal(t, proto, got.Header.Get("X-Forwarded-Proto"))
			})
		}
	}
}

func TestHostOfAnApplication(t *testing.T) {
	l := newLab(t, tell)
	c := l.http1()
	name := "8080-" + sandboxID + ".localhost"
	tests := []struct{ name, mask, port, want string }{
		{"as sent", "", "8080", name},
		{"masked", "app.internal", "8080", "app.internal"},
		{"masked with the port", "localhost:${PORT}", "8080", "localhost:8080"},
		{"never for the daemon", "localhost:${PORT}", envdPort, "localhost"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l.route.MaskRequestHost = test.mask
			r := l.request(c, "GET", "/", test.port, nil)
			r.Host = name
			if test.port == envdPort {
				r.Host = "localhost"
			}
			_, body := l.do(c, r)
			got := told(t, body)
			require.Equal(t, test.want, got.Host)
			require.Equal(t, r.Host, got.Header.Get("X-Forwarded-Host"))
		})
	}
}

func TestAnswerPassesUnchanged(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789"), 5000)
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, _ = zip.Write(content)
	require.NoError(t, zip.Close())
	l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/file":
			http.ServeContent(w, r, "a.bin", time.Unix(1_700_000_000, 0), bytes.NewReader(content))
		case "/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Add("Set-Cookie", "a=1")
			w.Header().Add("Set-Cookie", "b=2")
			_, _ = w.Write(packed.Bytes())
		case "/none":
			w.WriteHeader(http.StatusNoContent)
		case "/moved":
			w.Header().Set("Location", "/else where")
			w.WriteHeader(http.StatusFound)
		case "/trailer":
			w.Header().Set("Trailer", "X-Sum")
			_, _ = io.WriteString(w, "body")
			w.Header().Set("X-Sum", "42")
		case "/hint":
			w.Header().Set("Link", "</a.css>")
			w.WriteHeader(http.StatusEarlyHints)
			_, _ = io.WriteString(w, "body")
		}
	})
	for _, c := range l.clients() {
		c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		get := func(target string, headers ...string) (*http.Response, string) {
			r := l.request(c, "GET", target, envdPort, nil)
			for i := 0; i < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
			return l.do(c, r)
		}
		t.Run(c.name, func(t *testing.T) {
			answer, body := get("/file")
			require.Equal(t, string(content), body)
			require.EqualValues(t, len(content), answer.ContentLength)
			answer, body = get("/file", "Range", "bytes=10-14")
			require.Equal(t, 206, answer.StatusCode)
			require.Equal(t, "01234", body)
			require.Equal(t, "bytes 10-14/50000", answer.Header.Get("Content-Range"))
			answer, _ = get("/file", "If-Modified-Since", answer.Header.Get("Last-Modified"))
			require.Equal(t, 304, answer.StatusCode)
			answer, body = get("/gzip", "Accept-Encoding", "gzip")
			require.Equal(t, packed.String(), body)
			require.Equal(t, "gzip", answer.Header.Get("Content-Encoding"))
			require.Equal(t, []string{"a=1", "b=2"}, answer.Header["Set-Cookie"])
			answer, _ = get("/none")
			require.Equal(t, 204, answer.StatusCode)
			answer, _ = get("/moved")
			require.Equal(t, "/else where", answer.Header.Get("Location"))
			answer, body = get("/trailer")
			require.Equal(t, "body", body)
			require.Equal(t, "42", answer.Trailer.Get("X-Sum"))
			answer, body = get("/hint")
			require.Equal(t, 200, answer.StatusCode)
			require.Equal(t, "body", body)
		})
	}
}

func TestExpectContinue(t *testing.T) {
	l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refuse" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.Copy(w, r.Body)
	})
	c := l.http1()
	c.Transport.(*http.Transport).ExpectContinueTimeout = patience
	for path, status := range map[string]int{"/": 200, "/refuse": 401} {
		r := l.request(c, "POST", path, envdPort, strings.NewReader("hello"))
		r.Header.Set("Expect", "100-continue")
		begun := time.Now()
		answer, _ := l.do(c, r)
		require.Equal(t, status, answer.StatusCode)
		require.Less(t, time.Since(begun), patience/2)
	}
}

// endless is a body of so many bytes.
type endless struct{ left int64 }

func (e *endless) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), e.left)
	e.left -= n
	return int(n), nil
}

func TestLargeBodiesAreNotHeld(t *testing.T) {
	size := int64(1 << 30)
	if testing.Short() {
		size = 64 << 20
	}
	l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.Copy(w, &endless{size})
			return
		}
		n, _ := io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprint(w, n)
	})
	c := l.http1()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := l.request(c, "POST", "/files", envdPort, &endless{size})
	_, body := l.do(c, r)
	require.Equal(t, fmt.Sprint(size), body)
	answer, err := c.Do(l.request(c, "GET", "/files", "8080", nil))
	require.NoError(t, err)
	n, err := io.Copy(io.Discard, answer.Body)
	require.NoError(t, err)
	require.Equal(t, size, n)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20), "bytes allocated for the whole of both ways")
}

// echo speaks WebSocket.
func echo(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true, Subprotocols: []string{"binary"}})
	if err != nil {
		return
	}
	defer conn.CloseNow()
	conn.SetReadLimit(-1)
	for {
		kind, text, err := conn.Read(context.Background())
		if err != nil {
			return
		}
		if err := conn.Write(context.Background(), kind, text); err != nil {
			return
		}
	}
}

// websocketTo opens a WebSocket to a port of the sandbox.
func (l *lab) websocketTo(port string) *websocket.Conn {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r := l.request(l.http1(), "GET", "/", port, nil)
	conn, answer, err := websocket.Dial(ctx, l.plain.URL+"/socket", &websocket.DialOptions{HTTPHeader: r.Header, Subprotocols: []string{"binary"}})
	require.NoError(l.t, err)
	require.Equal(l.t, "binary", answer.Header.Get("Sec-Websocket-Protocol"))
	l.t.Cleanup(func() { _ = conn.CloseNow() })
	conn.SetReadLimit(-1)
	return conn
}

func TestWebSocket(t *testing.T) {
	l := newLab(t, echo)
	for _, port := range []string{"8080", envdPort} {
		conn := l.websocketTo(port)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for _, size := range []int{0, 1, 125, 70_000, 1 << 20} {
			sent := bytes.Repeat([]byte("x"), size)
			require.NoError(t, conn.Write(ctx, websocket.MessageBinary, sent))
			kind, got, err := conn.Read(ctx)
			require.NoError(t, err)
			require.Equal(t, websocket.MessageBinary, kind)
			require.True(t, bytes.Equal(sent, got))
		}
		require.NoError(t, conn.Close(websocket.StatusNormalClosure, "bye"))
	}
	require.Eventually(t, func() bool { return l.open.Load() == 0 }, patience, 5*time.Millisecond)
}

func TestWebSocketEndsWithItsSandbox(t *testing.T) {
	l := newLab(t, echo)
	conns := []*websocket.Conn{l.websocketTo("8080"), l.websocketTo(envdPort)}
	require.EqualValues(t, 2, l.open.Load())
	close(l.gone)
	for _, conn := range conns {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, _, err := conn.Read(ctx)
		require.Error(t, err)
		require.NoError(t, ctx.Err(), "the client was not told")
	}
	require.Eventually(t, func() bool { return l.open.Load() == 0 }, patience, 5*time.Millisecond)
}
