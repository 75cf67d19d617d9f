package server

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/server/admin"
	"github.com/isthmus/isthmus/server/config"
	"github.com/isthmus/isthmus/server/fleet"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/store/kv/badger"
)

// full is a provider that has no room.
type full struct{}

func (full) Describe() adapters.Description { return adapters.Description{Provider: "full"} }

func (full) Resolve(context.Context, string) (adapters.Template, error) {
	return adapters.Template{ID: "t0000000000000000000", Name: "base"}, nil
}

func (full) Create(context.Context, adapters.Spec) (adapters.Box, error) {
	return adapters.Box{}, adapters.Errorf(adapters.KindCapacity, "this machine is full")
}

func (full) Get(context.Context, string) (adapters.Box, error) {
	return adapters.Box{}, adapters.Errorf(adapters.KindNotFound, "no box")
}

func (full) List(context.Context, string) ([]adapters.Box, error) { return nil, nil }

func (full) Destroy(context.Context, string) error { return nil }

func (full) Reach(context.Context, string) (adapters.Endpoint, error) {
	return adapters.Endpoint{}, adapters.Errorf(adapters.KindNotFound, "no box")
}

func (full) Run(ctx context.Context) error { <-ctx.Done(); return nil }

func options(t testing.TB) Options {
	t.Helper()
	dir := t.TempDir()
	engine, err := badger.Open(dir+"/store", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	s, err := store.Open(t.Context(), engine)
	require.NoError(t, err)
	secrets, err := fleet.LoadSecrets(dir + "/key")
	require.NoError(t, err)
	key, err := admin.Prepare(t.Context(), s, dir, "")
	require.NoError(t, err)
	c := config.Default()
	c.Data, c.Listen, c.Operator.Listen = dir, "127.0.0.1:0", "127.0.0.1:0"
	return Options{Config: c, AdminToken: "a token of the test", APIKey: key, Store: s, Secrets: secrets,
		Pools: []fleet.Pool{{Name: "full", Provider: full{}}}, Log: slog.New(slog.DiscardHandler)}
}

// serve runs a server until the test ends.
func serve(t testing.TB, o Options) (*Server, admin.Environment) {
	t.Helper()
	s, err := New(o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan admin.Environment, 1), make(chan error, 1)
	go func() { ended <- s.Run(ctx, func(where admin.Environment) { ready <- where }) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
		left, err := os.ReadDir(o.Config.Data)
		require.NoError(t, err)
		for _, entry := range left {
			require.NotContains(t, entry.Name(), "sock")
		}
	})
	select {
	case where := <-ready:
		return s, where
	case err := <-ended:
		ended <- err
		require.NoError(t, err)
		return nil, admin.Environment{}
	}
}

func get(t *testing.T, url string, header http.Header, host string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	request.Header, request.Host = header, host
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode, string(body)
}

func TestOneListenerForEverything(t *testing.T) {
	o := options(t)
	s, where := serve(t, o)
	require.Equal(t, where.APIURL, where.SandboxURL)
	_, port, err := net.SplitHostPort(s.public.Addr().String())
	require.NoError(t, err)
	require.Equal(t, "localhost:"+port, where.Domain)

	status, _ := get(t, where.APIURL+"/health", nil, "")
	require.Less(t, status, 300)
	status, body := get(t, where.APIURL+"/v2/sandboxes", http.Header{"X-Api-Key": {o.APIKey}}, "")
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, "[]", body)
	status, _ = get(t, where.APIURL+"/v2/sandboxes", http.Header{"X-Api-Key": {"e2b_" + strings.Repeat("0", 40)}}, "")
	require.Equal(t, http.StatusUnauthorized, status)
	status, body = get(t, where.APIURL+"/", nil, "8080-iaaaaaaaaaaaaaaaaaaaa."+where.Domain)
	require.Equal(t, http.StatusBadGateway, status, body)
	status, body = get(t, where.APIURL+"/health", http.Header{"E2b-Sandbox-Id": {"iaaaaaaaaaaaaaaaaaaaa"}, "E2b-Sandbox-Port": {"49983"}}, "")
	require.Equal(t, http.StatusBadGateway, status, body)
	status, _ = get(t, where.APIURL+"/isthmus/teams", http.Header{"X-Admin-Token": {o.AdminToken}}, "")
	require.Equal(t, http.StatusNotFound, status, "administration is not on the public listener")
	status, _ = get(t, where.APIURL+"/metrics", nil, "")
	require.Equal(t, http.StatusNotFound, status)
}

func TestCreateReachesTheProvider(t *testing.T) {
	o := options(t)
	_, where := serve(t, o)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, where.APIURL+"/v2/sandboxes", strings.NewReader(`{"templateID":"base"}`))
	require.NoError(t, err)
	request.Header = http.Header{"X-Api-Key": {o.APIKey}, "Content-Type": {"application/json"}}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	var failure struct {
		Code    int
		Message string
	}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&failure))
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	require.Contains(t, failure.Message, "full")
}

func TestOperatorListener(t *testing.T) {
	o := options(t)
	s, _ := serve(t, o)
	base := "http://" + s.operator.Addr().String()
	status, body := get(t, base+"/metrics", nil, "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "isthmus_sandboxes_running 0\n")
	status, _ = get(t, base+"/isthmus/teams", nil, "")
	require.Equal(t, http.StatusUnauthorized, status)
	status, body = get(t, base+"/isthmus/teams", http.Header{"X-Admin-Token": {o.AdminToken}}, "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "default")
}

func TestSocketShowsTheKey(t *testing.T) {
	o := options(t)
	_, where := serve(t, o)
	client, err := admin.Dial(t.Context(), o.Config.Data)
	require.NoError(t, err)
	got, err := client.Environment(t.Context())
	require.NoError(t, err)
	require.Equal(t, where, got)
	require.Equal(t, o.APIKey, got.APIKey)
	require.NoError(t, client.Close())
}

func TestAddressInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	o := options(t)
	o.Config.Listen = taken.Addr().String()
	_, err = New(o)
	require.ErrorContains(t, err, "--listen")
	require.ErrorContains(t, CanListen(o.Config), "--listen")
	o.Config.Listen, o.Config.Operator.Listen = "127.0.0.1:0", taken.Addr().String()
	require.ErrorContains(t, CanListen(o.Config), "operator.listen")
	_, err = New(o)
	require.ErrorContains(t, err, "operator.listen")
	o.Config.Operator.Listen = "127.0.0.1:0"
	require.NoError(t, CanListen(o.Config))
}

func TestBadCertificateEndsTheRun(t *testing.T) {
	o := options(t)
	o.Config.TLS = config.TLS{Cert: "/nowhere", Key: "/nowhere"}
	s, err := New(o)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(t.Context(), func(admin.Environment) {}) }()
	select {
	case err := <-ended:
		require.ErrorContains(t, err, "certificate")
	case <-time.After(30 * time.Second):
		t.Fatal("the server runs without its certificate")
	}
}

func TestWhere(t *testing.T) {
	any4 := &net.TCPAddr{IP: net.IPv4zero, Port: 80}
	cases := []struct {
		name   string
		c      config.Config
		api    string
		domain string
		mode   string
	}{
		{"default", config.Config{}, "http://127.0.0.1:80", "localhost:80", "localhost:80 works in browsers"},
		{"domain", config.Config{Domain: "x.example"}, "http://127.0.0.1:80", "x.example", "without TLS"},
		{"tls", config.Config{Domain: "x.example", TLS: config.TLS{Cert: "c", Key: "k"}}, "https://x.example", "x.example", "E2B_DOMAIN=x.example"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			where := Where(c.c, any4)
			require.Equal(t, c.api, where.APIURL)
			require.Equal(t, c.domain, where.Domain)
			require.Contains(t, Mode(c.c, where), c.mode)
		})
	}
}
