package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
)

// innerID is the sandbox's id on its own server.
const innerID = "iinner00000000000000"

// elsewhere puts the lab's sandbox on another server, which is the lab's daemon.
func (l *lab) elsewhere(byName bool) {
	address, err := url.Parse("http://127.0.0.1")
	require.NoError(l.t, err)
	l.route.Inner = &adapters.Inner{ID: innerID, Port: func(port uint16) adapters.Endpoint {
		endpoint := adapters.Endpoint{URL: address, Dial: l.envd.dial,
			Header: http.Header{"E2b-Sandbox-Id": {innerID}, "E2b-Sandbox-Port": {strconv.Itoa(int(port))}}}
		if byName {
			endpoint.URL = &url.URL{Scheme: "http", Host: fmt.Sprintf("%d-%s.inner.example", port, innerID)}
		}
		return endpoint
	}}
	l.route.Endpoint = l.route.Inner.Port(envd.Port)
	l.route.Transport, l.route.Control = "", ""
}

func TestRequestsToAnotherServer(t *testing.T) {
	l := newLab(t, tell)
	l.elsewhere(false)
	for _, port := range []string{"49983", "8080"} {
		for _, c := range l.clients() {
			r := l.request(c, "POST", "/a%20b;c?x=%zz", port, strings.NewReader("body"))
			r.Header.Set("X-Access-Token", "the client's")
			r.Header.Set("E2b-Traffic-Access-Token", "the client's too")
			r.Header.Set(envd.HeaderTransport, "forged")
			_, body := l.do(c, r)
			got := told(t, body)
			require.Equal(t, "the client's", got.Header.Get("X-Access-Token"))
			require.Equal(t, "the client's too", got.Header.Get("E2b-Traffic-Access-Token"), "it is for the server there")
			require.Equal(t, []string{innerID}, got.Header["E2b-Sandbox-Id"])
			require.Equal(t, []string{port}, got.Header["E2b-Sandbox-Port"])
			require.Empty(t, got.Header.Get(envd.HeaderTransport))
			require.Empty(t, got.Header.Get(envd.HeaderControl))
		}
	}
}

func TestTheHostOnAnotherServer(t *testing.T) {
	l := newLab(t, tell)
	l.elsewhere(false)
	visit := func(headers ...string) seen {
		r := l.request(l.http1(), "GET", "/", "8080", nil)
		r.Host = "8080-" + sandboxID + ".localhost:3000"
		for _, host := range headers {
			r.Header.Set("Isthmus-Host", host)
		}
		_, body := l.do(l.http1(), r)
		return told(t, body)
	}
	got := visit()
	require.Equal(t, "127.0.0.1", got.Host, "its own, out of which it reads no other sandbox")
	require.Equal(t, "8080-"+sandboxID+".localhost:3000", got.Header.Get("Isthmus-Host"))
	require.Equal(t, "outer.example", visit("outer.example").Header.Get("Isthmus-Host"), "this one is in the middle")

	l.route.Inner = nil // this one is the last
	got = visit("outer.example")
	require.Equal(t, "outer.example", got.Host, "the application sees what the client sent")
	require.Equal(t, "outer.example", got.Header.Get("X-Forwarded-Host"))
	require.Empty(t, got.Header.Get("Isthmus-Host"))
}

func TestOnlyErrorsOfTheOtherGatewayAreRenamed(t *testing.T) {
	theirs := `{"sandboxId":"` + innerID + `","message":"The sandbox is running but port is not open","port":8080,"code":502}` + "\n"
	for name, test := range map[string]struct {
		status      int
		contentType string
		body        string
		renamed     bool
	}{
		"an error of the gateway":    {502, "application/json; charset=utf-8", theirs, true},
		"an answer that is no error": {200, "application/json", theirs, false},
		"another status":             {404, "application/json", theirs, false},
		"another type":               {502, "text/plain", theirs, false},
		"another sandbox":            {502, "application/json", strings.ReplaceAll(theirs, innerID, "ix"), false},
		"a field of an application":  {502, "application/json", strings.Replace(theirs, `{`, `{"mine":1,`, 1), false},
		"no JSON":                    {502, "application/json", "oops " + innerID, false},
		"much":                       {502, "application/json", theirs + strings.Repeat(" ", 5000), false},
		"nothing":                    {502, "application/json", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", test.contentType)
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			})
			l.elsewhere(true)
			answer, body := l.do(l.http1(), l.request(l.http1(), "GET", "/", "8080", nil))
			want := test.body
			if test.renamed {
				want = strings.ReplaceAll(want, innerID, sandboxID)
			}
			require.Equal(t, test.status, answer.StatusCode)
			require.Equal(t, want, body)
		})
	}
}

func TestTheControlPlaneOfAnotherServerIsNotReached(t *testing.T) {
	l := newLab(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
	const toEnvd = "Host: 49983-" + sandboxID + ".localhost\r\n" // with headers, this server's own control plane is meant
	get := func(path, to string) int {
		return readAnswer(t, l.raw("GET "+path+" HTTP/1.1\r\n"+to+"Connection: close\r\n\r\n")).StatusCode
	}
	control := []string{
		"/sandboxes", "/sandboxes/", "/sandboxes?x=1", "/v2/sandboxes", "/sandboxes/i1/connect", "//sandboxes/i1", "/v2//sandboxes", "/./v2/sandboxes",
		"/x/../sandboxes", "/%73andboxes", "/%2573andboxes/i1", "/v2%2Fsandboxes", "/v2/x/%2e%2e/sandboxes", "/SANDBOXES/i1", "/sandboxes;x",
		"/%" + strings.Repeat("25", 20) + "73andboxes",
	}
	open := []string{"/", "/health", "/files/sandboxes", "/v2/files", "/process.Process/Start"}
	require.Equal(t, http.StatusAccepted, get("/sandboxes", toEnvd), "a sandbox of ours: its envd answers")
	l.elsewhere(false)
	for _, path := range control {
		require.Equal(t, http.StatusNotFound, get(path, toEnvd), path)
	}
	for _, path := range open {
		require.Equal(t, http.StatusAccepted, get(path, toEnvd), path)
	}
	require.Equal(t, http.StatusAccepted, get("/sandboxes", toApp), "an application may have that path")
}
