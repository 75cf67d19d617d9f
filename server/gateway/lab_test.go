package gateway_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/envd/tunnel"
	"github.com/isthmus/isthmus/server/edge"
	"github.com/isthmus/isthmus/server/fleet"
	"github.com/isthmus/isthmus/server/gateway"
)

const (
	sandboxID = "iabcdefghij0123456789"
	// patience bounds what must happen at once; it is long so that a busy machine does not fail.
	patience = 30 * time.Second
	appPort  = 8080
)

// lab is a gateway on real listeners, with one sandbox whose daemon and application are handlers of the test.
type lab struct {
	t        testing.TB
	envd     *backend
	app      *backend
	route    *fleet.Route
	gone     chan struct{}
	routeErr error
	wakeErr  error
	tunnel   bool // ports are reached through the daemon
	woken    atomic.Int64
	gateway  *gateway.Gateway
	open     atomic.Int64     // requests in the gateway
	plain    *httptest.Server // HTTP/1.1 and h2c
	secure   *httptest.Server // HTTP/2 over TLS
}

func newLab(t testing.TB, handler http.HandlerFunc) *lab {
	l := &lab{t: t, gone: make(chan struct{})}
	l.envd, l.app = newBackend(t, handler), newBackend(t, handler)
	address, err := url.Parse("http://envd")
	require.NoError(t, err)
	l.route = &fleet.Route{
		SandboxID: sandboxID,
		Endpoint:  adapters.Endpoint{URL: address, Dial: l.envd.dial},
		Transport: "transport-secret",
		Control:   "control-secret",
		EnvdToken: "envd-token",
		Gone:      l.gone,
	}
	l.gateway = gateway.New(gateway.Config{Sandboxes: l, DialPort: l.dialPort, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(l.gateway.Close)
	control := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	front := edge.New([]string{"localhost"}, l.gateway, control)
	handlers := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.open.Add(1)
		defer l.open.Add(-1)
		front.ServeHTTP(w, r)
	})

	l.plain = httptest.NewUnstartedServer(handlers)
	l.plain.Config.Protocols = new(http.Protocols)
	l.plain.Config.Protocols.SetHTTP1(true)
	l.plain.Config.Protocols.SetUnencryptedHTTP2(true)
	l.plain.Start()
	l.secure = httptest.NewUnstartedServer(handlers)
	l.secure.EnableHTTP2 = true
	l.secure.StartTLS()
	for _, server := range []*httptest.Server{l.plain, l.secure} {
		t.Cleanup(func() {
			server.CloseClientConnections()
			server.Close()
		})
	}
	return l
}

// Route implements gateway.Sandboxes.
func (l *lab) Route(_ context.Context, id string) (*fleet.Route, error) {
	switch {
	case l.routeErr != nil:
		return nil, l.routeErr
	case id != sandboxID:
		return nil, adapters.Errorf(adapters.KindNotFound, "no such sandbox")
	}
	return l.route, nil
}

// Wake implements gateway.Sandboxes.
func (l *lab) Wake(context.Context, string) error {
	l.woken.Add(1)
	l.routeErr = l.wakeErr
	return l.wakeErr
}

// Match implements gateway.Sandboxes.
func (l *lab) Match(_ context.Context, check func(id, token string) bool) (string, bool) {
	if check("iopen", "") {
		return "iopen", true
	}
	return sandboxID, check(sandboxID, l.route.EnvdToken)
}

func (l *lab) dialPort(ctx context.Context, route *fleet.Route, port uint16) (net.Conn, error) {
	if l.tunnel {
		return gateway.Tunnel(ctx, route, port)
	}
	if port != appPort {
		return nil, tunnel.ErrPortClosed
	}
	return l.app.dial(ctx)
}

// client is one way of talking to the gateway.
type client struct {
	*http.Client
	name, base string
}

// clients are all ways; each has connections of its own.
func (l *lab) clients() []client {
	return []client{l.http1(), l.over("h2c", l.plain), l.over("h2", l.secure)}
}

func (l *lab) http1() client { return l.over("h1", l.plain) }

func (l *lab) over(name string, server *httptest.Server) client {
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64, Protocols: new(http.Protocols)}
	switch name {
	case "h1":
		transport.Protocols.SetHTTP1(true)
	case "h2c":
		transport.Protocols.SetUnencryptedHTTP2(true)
	case "h2":
		transport.Protocols.SetHTTP2(true)
		transport.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
		transport.TLSClientConfig.RootCAs.AddCert(server.Certificate())
	}
	l.t.Cleanup(transport.CloseIdleConnections)
	return client{Client: &http.Client{Transport: transport}, name: name, base: server.URL}
}

// request addresses the sandbox by headers.
func (l *lab) request(c client, method, target, port string, body io.Reader) *http.Request {
	ctx, cancel := context.WithTimeout(context.Background(), 6*patience)
	l.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, c.base+target, body)
	require.NoError(l.t, err)
	r.Header.Set(edge.HeaderSandboxID, sandboxID)
	r.Header.Set(edge.HeaderSandboxPort, port)
	return r
}

// do sends a request and returns the answer and its body.
func (l *lab) do(c client, r *http.Request) (*http.Response, string) {
	answer, err := c.Do(r)
	require.NoError(l.t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(l.t, err)
	require.NoError(l.t, answer.Body.Close())
	return answer, string(body)
}

// raw opens a connection to the plain listener and sends text.
func (l *lab) raw(text string) net.Conn {
	conn, err := net.Dial("tcp", l.plain.Listener.Addr().String())
	require.NoError(l.t, err)
	l.t.Cleanup(func() { _ = conn.Close() })
	require.NoError(l.t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(conn, text)
	require.NoError(l.t, err)
	return conn
}

// toEnvd and toApp are the address headers of a raw request.
const (
	toEnvd = "Host: localhost\r\nE2b-Sandbox-Id: " + sandboxID + "\r\nE2b-Sandbox-Port: 49983\r\n"
	toApp  = "Host: localhost\r\nE2b-Sandbox-Id: " + sandboxID + "\r\nE2b-Sandbox-Port: 8080\r\n"
)

// envdPort is the daemon's port as text.
const envdPort = "49983"

var _ = [1]struct{}{}[envd.Port-49983] // envdPort is right

// backend is an HTTP/1.1 server on a unix socket that can die.
type backend struct {
	path string

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

func newBackend(t testing.TB, handler http.HandlerFunc) *backend {
	folder, err := os.MkdirTemp("", "gateway")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	b := &backend{path: filepath.Join(folder, "s"), conns: map[net.Conn]struct{}{}}
	listener, err := net.Listen("unix", b.path)
	require.NoError(t, err)
	server := &http.Server{Handler: handler, ConnState: b.note, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	return b
}

func (b *backend) dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", b.path)
}

func (b *backend) note(conn net.Conn, state http.ConnState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch state {
	case http.StateNew:
		b.conns[conn] = struct{}{}
	case http.StateClosed:
		delete(b.conns, conn)
	}
}

// die closes every connection, as a killed process does. Hijacked ones too.
func (b *backend) die() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for conn := range b.conns {
		_ = conn.Close()
	}
}
