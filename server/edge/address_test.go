package edge

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const id = "iabcdefghij0123456789"

var domains = []string{"localhost:3000", "Sandbox.Example.com."}

// request builds what net/http would hand over, with headers as name, value, name, value.
func request(method, host, target string, headers ...string) *http.Request {
	u, err := url.ParseRequestURI(target)
	if err != nil {
		panic(err)
	}
	r := &http.Request{Method: method, Host: host, URL: u, Header: http.Header{}}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func TestDecide(t *testing.T) {
	sandbox := func(port uint16) Address { return Address{Kind: Sandbox, SandboxID: id, Port: port} }
	control, signedFile := Address{Kind: ControlPlane}, Address{Kind: Signed}
	both := []string{HeaderSandboxID, id, HeaderSandboxPort, "49983"}

	tests := []struct {
		name    string
		method  string
		host    string
		target  string
		headers []string
		want    Address
		err     string
	}{
		// Host names.
		{name: "host", host: "49983-" + id + ".localhost:3000", want: sandbox(49983)},
		{name: "host, no port part", host: "8080-" + id + ".sandbox.example.com", want: sandbox(8080)},
		{name: "host, other port part", host: "8080-" + id + ".localhost:8443", want: sandbox(8080)},
		{name: "host, upper case", host: "8080-" + strings.ToUpper(id) + ".SANDBOX.Example.COM:443", want: sandbox(8080)},
		{name: "host, trailing dot", host: "8080-" + id + ".localhost.:3000", want: sandbox(8080)},
		{name: "host, client id", host: "8080-" + id + "-6532622b.localhost:3000", want: sandbox(8080)},
		{name: "host, anything after the id", host: "8080-" + id + "-a-b-c.localhost:3000", want: sandbox(8080)},
		{name: "host, any path", host: "8080-" + id + ".localhost:3000", target: "/sandboxes", want: sandbox(8080)},
		{name: "host, first port", host: "1-" + id + ".localhost:3000", want: sandbox(1)},
		{name: "host, last port", host: "65535-" + id + ".localhost:3000", want: sandbox(65535)},
		{name: "host before signature", host: "49983-" + id + ".localhost:3000", target: "/files?signature=v1_x", want: sandbox(49983)},
		{name: "host, port 0", host: "0-" + id + ".localhost:3000", err: `port "0"`},
		{name: "host, port 65536", host: "65536-" + id + ".localhost:3000", err: `port "65536"`},
		{name: "host, port of letters", host: "http-" + id + ".localhost:3000", err: `port "http"`},
		{name: "host, port with a leading zero", host: "080-" + id + ".localhost:3000", err: `port "080"`},
		{name: "host, no port", host: "-" + id + ".localhost:3000", err: `port ""`},
		{name: "host, no id", host: "8080-.localhost:3000", err: `sandbox id ""`},
		{name: "host, empty id before a suffix", host: "8080--x.localhost:3000", err: `sandbox id ""`},
		{name: "host, bad id", host: "8080-a_b.localhost:3000", err: `sandbox id "a_b"`},
		{name: "host, id in unicode", host: "8080-é.localhost:3000", err: "sandbox id"},
		{name: "host, markup", host: "8080-<b>.localhost:3000", err: "sandbox id"},
		{name: "host two labels below the domain", host: "8080-" + id + ".x.localhost:3000", want: control},
		{name: "host of another domain", host: "8080-" + id + ".example.org", want: control},
		{name: "host that only ends like the domain", host: "8080-" + id + ".notlocalhost:3000", want: control},
		{name: "host without a dash", host: "api.localhost:3000", want: control},
		{name: "the domain itself", host: "localhost:3000", want: control},
		{name: "IPv4", host: "127.0.0.1:3000", want: control},
		{name: "IPv6", host: "[::1]:3000", want: control},
		{name: "IPv6 without a port", host: "[::1]", want: control},
		{name: "no host", host: "", want: control},

		// Host name and headers together.
		{name: "host and headers agree", host: "49983-" + id + ".localhost:3000", headers: both, want: sandbox(49983)},
		{name: "host and the port alone agree", host: "49999-" + id + ".localhost:3000", headers: []string{HeaderSandboxPort, "49999"}, want: sandbox(49999)},
		{name: "host and the id alone agree", host: "49999-" + id + ".localhost:3000", headers: []string{HeaderSandboxID, id}, want: sandbox(49999)},
		{name: "host and port differ", host: "8080-" + id + ".localhost:3000", headers: both, err: "different"},
		{name: "host and id differ", host: "49983-iother.localhost:3000", headers: both, err: "different"},
		{name: "host good, header bad", host: "49983-" + id + ".localhost:3000", headers: []string{HeaderSandboxPort, "x"}, err: `port "x"`},

		// Headers.
		{name: "headers", host: "localhost:3000", headers: both, want: sandbox(49983)},
		{name: "headers at the shared name", host: "sandbox.example.com", headers: both, want: sandbox(49983)},
		{name: "headers whatever the host", host: "8080-x.elsewhere.org", headers: both, want: sandbox(49983)},
		{name: "headers before signature", host: "localhost:3000", target: "/files?signature=v1_x", headers: both, want: sandbox(49983)},
		{name: "headers, health", host: "localhost:3000", target: "/health", headers: both, want: sandbox(49983)},
		{name: "headers, a call about a sandbox", host: "api.localhost:3000", target: "/sandboxes/" + id + "/connect", headers: both, want: control},
		{name: "headers, a v2 call about a sandbox", host: "localhost:3000", target: "/v2/sandboxes/" + id + "/connect", headers: both, want: control},
		{name: "headers, such a path of a program", host: "h", target: "/sandboxes/x", headers: []string{HeaderSandboxID, id, HeaderSandboxPort, "80"}, want: sandbox(80)},
		{name: "headers, another path of that beginning", host: "h", target: "/sandboxesx", headers: both, want: sandbox(49983)},
		{name: "host and headers, a call about a sandbox", host: "49983-" + id + ".localhost:3000", target: "/sandboxes/x", headers: both, want: sandbox(49983)},
		{name: "headers, client id", host: "h", headers: []string{HeaderSandboxID, id + "-6532622b", HeaderSandboxPort, "1"}, want: sandbox(1)},
		{name: "headers, two dashes", host: "h", headers: []string{HeaderSandboxID, id + "-a-b", HeaderSandboxPort, "1"}, err: "sandbox id"},
		{name: "headers, empty client id", host: "h", headers: []string{HeaderSandboxID, id + "-", HeaderSandboxPort, "1"}, err: "sandbox id"},
		{name: "id alone", host: "h", headers: []string{HeaderSandboxID, id}, err: "go together"},
		{name: "port alone", host: "h", headers: []string{HeaderSandboxPort, "1"}, err: "go together"},
		{name: "id alone with a signature", host: "h", target: "/files?signature=v1_x", headers: []string{HeaderSandboxID, id}, err: "go together"},
		{name: "headers, port 0", host: "h", headers: []string{HeaderSandboxID, id, HeaderSandboxPort, "0"}, err: `port "0"`},
		{name: "headers, port 65536", host: "h", headers: []string{HeaderSandboxID, id, HeaderSandboxPort, "65536"}, err: `port "65536"`},
		{name: "headers, port of letters", host: "h", headers: []string{HeaderSandboxID, id, HeaderSandboxPort, "abc"}, err: `port "abc"`},
		{name: "headers, negative port", host: "h", headers: []string{HeaderSandboxID, id, HeaderSandboxPort, "-1"}, err: `port "-1"`},
		{name: "headers, port with a sign", host: "h", headers: []string{HeaderSandboxID, id, HeaderSandboxPort, "+80"}, err: `port "+80"`},
		{name: "headers, port in hex", host: "h", headers: []string{HeaderSandboxID, id, HeaderSandboxPort, "0x50"}, err: `port "0x50"`},
		{name: "headers, empty port", host: "h", headers: []string{HeaderSandboxID, id, HeaderSandboxPort, ""}, err: `port ""`},
		{name: "headers, empty id", host: "h", headers: []string{HeaderSandboxID, "", HeaderSandboxPort, "1"}, err: `sandbox id ""`},
		{name: "headers, upper case id", host: "h", headers: []string{HeaderSandboxID, strings.ToUpper(id), HeaderSandboxPort, "1"}, err: "sandbox id"},
		{name: "headers, path in id", host: "h", headers: []string{HeaderSandboxID, "../x", HeaderSandboxPort, "1"}, err: "sandbox id"},
		{name: "headers, long id", host: "h", headers: []string{HeaderSandboxID, strings.Repeat("a", 64), HeaderSandboxPort, "1"}, err: "sandbox id"},
		{name: "id twice", host: "h", headers: append([]string{HeaderSandboxID, "iother"}, both...), err: "2 times"},
		{name: "same id twice", host: "h", headers: append([]string{HeaderSandboxID, id}, both...), err: "2 times"},
		{name: "port twice", host: "h", headers: append([]string{HeaderSandboxPort, "1"}, both...), err: "2 times"},
		{name: "id list in one header", host: "h", headers: []string{HeaderSandboxID, id + ", iother", HeaderSandboxPort, "1"}, err: "sandbox id"},

		// Signed file URLs.
		{name: "signed read", host: "localhost:3000", target: "/files?path=a&signature=v1_x", want: signedFile},
		{name: "signed write", method: "POST", host: "localhost:3000", target: "/files?signature=v1_x", want: signedFile},
		{name: "signed preflight", method: "OPTIONS", host: "localhost:3000", target: "/files?signature=v1_x", want: signedFile},
		{name: "empty signature", host: "localhost:3000", target: "/files?signature=", want: signedFile},
		{name: "signed, other method", method: "DELETE", host: "localhost:3000", target: "/files?signature=v1_x", want: control},
		{name: "signed, other path", host: "localhost:3000", target: "/files/x?signature=v1_x", want: control},
		{name: "files without signature", host: "localhost:3000", target: "/files?path=a", want: control},
		{name: "the parameter in another case", host: "localhost:3000", target: "/files?Signature=v1_x", want: control},

		// Preflights.
		{name: "preflight", method: "OPTIONS", host: "h", target: "/process.Process/Start",
			headers: []string{"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type, e2b-sandbox-id,e2b-sandbox-port"}, want: Address{Kind: Preflight}},
		{name: "preflight of the control plane", method: "OPTIONS", host: "h",
			headers: []string{"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type,x-api-key"}, want: control},
		{name: "preflight by host", method: "OPTIONS", host: "1-" + id + ".localhost:3000",
			headers: []string{"Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "e2b-sandbox-id"}, want: sandbox(1)},
		{name: "options of a client that is no browser", method: "OPTIONS", host: "h", headers: both, want: sandbox(49983)},

		// Everything else.
		{name: "health", host: "localhost:3000", target: "/health", want: control},
		{name: "sandboxes", method: "POST", host: "api.sandbox.example.com", target: "/sandboxes", want: control},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			method, target := test.method, test.target
			if method == "" {
				method = http.MethodGet
			}
			if target == "" {
				target = "/"
			}
			got, err := Decide(domains, request(method, test.host, target, test.headers...))
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

func FuzzDecide(f *testing.F) {
	f.Add("49983-"+id+".localhost:3000", id, "49983")
	f.Add("0-..localhost", "", "0")
	f.Add("[::1]:3000", "a-b", "65536")
	f.Add("1-a.sandbox.example.com.:", "A", "-")
	f.Fuzz(func(t *testing.T, host, headerID, headerPort string) {
		r := request(http.MethodGet, host, "/", HeaderSandboxID, headerID, HeaderSandboxPort, headerPort)
		got, err := Decide(domains, r)
		if err != nil {
			require.Equal(t, Address{}, got)
			require.LessOrEqual(t, len(err.Error()), 1000)
			return
		}
		require.Equal(t, Sandbox, got.Kind, "both headers are there")
		require.True(t, validID(got.SandboxID))
		require.NotZero(t, got.Port)
		cut, _, _ := strings.Cut(headerID, "-")
		require.Equal(t, cut, got.SandboxID, "an accepted host agrees with the headers")
	})
}

func TestServeHTTPHandsOver(t *testing.T) {
	control := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Went", "control "+r.URL.Path) })
	handler := New(domains, recorder{}, control)

	tests := []struct {
		name, host, target, went string
		status                   int
	}{
		{"control plane, path untouched", "localhost:3000", "//a/../b", "control //a/../b", 200},
		{"sandbox", "80-" + id + ".localhost:3000", "/x", "sandbox " + id + " 80", 200},
		{"signed", "localhost:3000", "/files?signature=v1_x", "signed", 200},
		{"refused", "x-<script>.localhost:3000", "/", "", 400},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, request(http.MethodGet, test.host, test.target))
			require.Equal(t, test.status, w.Code)
			require.Equal(t, test.went, w.Header().Get("Went"))
			if test.status == 400 {
				require.JSONEq(t, `{"code":400,"message":"the host name must begin with <port>-<sandbox id>: the port \"x\" is not a number of 1 to 65535"}`, w.Body.String())
				require.NotContains(t, w.Body.String(), "<script>")
			}
		})
	}
}

func TestAPageMaySendTheHeadersThatNameASandbox(t *testing.T) {
	asked := "connect-protocol-version,e2b-sandbox-id,e2b-sandbox-port,x-access-token"
	w := httptest.NewRecorder()
	New(domains, recorder{}, http.NotFoundHandler()).ServeHTTP(w, request(http.MethodOptions, "127.0.0.1:3000", "/process.Process/Start",
		"Origin", "https://example.com", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", asked))
	require.Equal(t, http.StatusNoContent, w.Code)
	require.Equal(t, "*", w.Header().Get("Access-Control-Allow-Origin"))
	require.Equal(t, "POST", w.Header().Get("Access-Control-Allow-Methods"))
	require.Equal(t, asked, w.Header().Get("Access-Control-Allow-Headers"))
}

type recorder struct{}

func (recorder) ServeSandbox(w http.ResponseWriter, _ *http.Request, sandboxID string, port uint16) {
	w.Header().Set("Went", fmt.Sprintf("sandbox %s %d", sandboxID, port))
}

func (recorder) ServeSigned(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Went", "signed") }
