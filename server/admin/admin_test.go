package admin

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/server/auth"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/store/kv/badger"
)

// boxes is a fleet of names.
type boxes map[string]store.State

func (b boxes) All(context.Context) ([]store.Sandbox, error) {
	var all []store.Sandbox
	for id, state := range b {
		all = append(all, store.Sandbox{ID: id, State: state})
	}
	return all, nil
}

func (b boxes) KillAny(_ context.Context, id string) error {
	switch b[id] {
	case store.StateRunning:
		return nil
	case store.StateKilling:
		return adapters.Errorf(adapters.KindUnavailable, "away")
	}
	return adapters.Errorf(adapters.KindNotFound, "sandbox %s was not found", id)
}

func openStore(t *testing.T, dir string) *store.Store {
	t.Helper()
	engine, err := badger.Open(filepath.Join(dir, "store"), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	s, err := store.Open(t.Context(), engine)
	require.NoError(t, err)
	return s
}

func newAdmin(t *testing.T) (*Admin, string) {
	t.Helper()
	dir := t.TempDir()
	s := openStore(t, dir)
	_, err := Prepare(t.Context(), s, dir, "")
	require.NoError(t, err)
	return New(Config{Store: s, Fleet: boxes{"a": store.StateRunning, "b": store.StateKilling, "c": store.StateCreating}, DataDir: dir,
		Environment: Environment{APIURL: "http://x", APIKey: "secret"}}), dir
}

func TestClientInside(t *testing.T) {
	a, dir := newAdmin(t)
	ctx := t.Context()
	client := a.Inside()
	defer func() { require.NoError(t, client.Close()) }()

	list, err := client.Sandboxes(ctx)
	require.NoError(t, err)
	require.Len(t, list, 3)
	require.NoError(t, client.Kill(ctx, "a"))
	require.ErrorContains(t, client.Kill(ctx, "nope"), "nope was not found")
	killed, err := client.KillAll(ctx)
	require.NoError(t, err)
	require.Equal(t, Killed{Killed: 1, Failed: []string{"b"}}, killed)

	team, err := client.CreateTeam(ctx, NewTeam{Name: "two"})
	require.NoError(t, err)
	_, err = client.CreateTeam(ctx, NewTeam{Name: "two"})
	require.ErrorContains(t, err, "exists")
	for _, bad := range []string{"", " x", "a/b", strings.Repeat("x", 65), "x\n"} {
		_, err = client.CreateTeam(ctx, NewTeam{Name: bad})
		require.ErrorContains(t, err, "name must be", "%q", bad)
	}
	teams, err := client.Teams(ctx)
	require.NoError(t, err)
	require.Len(t, teams, 2)

	key, err := client.CreateKey(ctx, NewKey{Team: "two", Name: "ci"})
	require.NoError(t, err)
	require.True(t, auth.Valid(key.Key))
	require.Equal(t, team.ID, key.TeamID)
	_, err = client.CreateKey(ctx, NewKey{Team: "three"})
	require.ErrorContains(t, err, "no team three")
	keys, err := client.Keys(ctx)
	require.NoError(t, err)
	require.Len(t, keys, 2)
	for _, listed := range keys {
		require.Empty(t, listed.Key)
	}
	for _, one := range keys {
		require.NoError(t, client.RevokeKey(ctx, one.ID))
	}
	require.ErrorContains(t, client.RevokeKey(ctx, keys[0].ID), "no such record")
	require.NoFileExists(t, filepath.Join(dir, firstKeyFile), "a revoked key must not come back from its file")

	var backup bytes.Buffer
	require.NoError(t, client.Backup(ctx, &backup))
	require.NotZero(t, backup.Len())
	environment, err := client.Environment(ctx)
	require.NoError(t, err)
	require.Equal(t, "secret", environment.APIKey)
}

func TestSocket(t *testing.T) {
	a, dir := newAdmin(t)
	// A path that is longer than a socket's may be.
	deep := filepath.Join(dir, strings.Repeat("deep/", 40))
	require.NoError(t, os.MkdirAll(deep, 0o700))
	_, err := Dial(t.Context(), deep)
	require.ErrorIs(t, err, ErrNoServer)

	serve := func() (net.Listener, func()) {
		listener, err := ListenSocket(deep)
		require.NoError(t, err)
		server := &http.Server{Handler: a.Socket()}
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(listener) }()
		return listener, func() { _ = server.Close(); <-ended }
	}
	_, stop := serve()
	info, err := os.Stat(filepath.Join(deep, socketName))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	client, err := Dial(t.Context(), deep)
	require.NoError(t, err)
	_, err = client.Sandboxes(t.Context())
	require.NoError(t, err)
	require.NoError(t, client.Close())
	stop()

	_, err = Dial(t.Context(), deep)
	require.ErrorIs(t, err, ErrNoServer, "the socket of a server that died")
	_, stop = serve()
	client, err = Dial(t.Context(), deep)
	require.NoError(t, err, "and its successor takes the place")
	require.NoError(t, client.Close())
	stop()
	require.NoError(t, RemoveSocket(deep))
	left, err := os.ReadDir(deep)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestRemoteNeedsTheToken(t *testing.T) {
	a, _ := newAdmin(t)
	cases := []struct {
		name, token, sent, path string
		want                    int
	}{
		{"off", "", "", "/isthmus/teams", http.StatusForbidden},
		{"off, empty header", "", "x", "/isthmus/teams", http.StatusForbidden},
		{"none", "token", "", "/isthmus/teams", http.StatusUnauthorized},
		{"wrong", "token", "tokem", "/isthmus/teams", http.StatusUnauthorized},
		{"right", "token", "token", "/isthmus/teams", http.StatusOK},
		{"the key is for the socket only", "token", "token", "/isthmus/env", http.StatusNotFound},
		{"nothing there", "token", "token", "/isthmus/nope", http.StatusNotFound},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, c.path, nil)
			r.Header.Set(tokenHeader, c.sent)
			w := httptest.NewRecorder()
			a.Remote(c.token).ServeHTTP(w, r)
			require.Equal(t, c.want, w.Code)
			require.Equal(t, "application/json", w.Header().Get("Content-Type"))
		})
	}
}

func TestPrepare(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	s := openStore(t, dir)
	valid := func(key string) bool {
		_, _, found, err := s.Keys.TeamByKeyHash(ctx, auth.Hash(key))
		require.NoError(t, err)
		return found
	}
	first, err := Prepare(ctx, s, dir, "")
	require.NoError(t, err)
	require.True(t, valid(first))
	info, err := os.Stat(filepath.Join(dir, firstKeyFile))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	again, err := Prepare(ctx, s, dir, "")
	require.NoError(t, err)
	require.Equal(t, first, again)

	one, two := auth.NewKey(), auth.NewKey()
	for _, given := range []string{one, two, two} {
		got, err := Prepare(ctx, s, dir, given)
		require.NoError(t, err)
		require.Equal(t, given, got)
	}
	require.False(t, valid(one), "an earlier given key is void")
	require.True(t, valid(two))
	got, err := Prepare(ctx, s, dir, "")
	require.NoError(t, err)
	require.Equal(t, first, got)
	require.False(t, valid(two), "and so is one that is given no more")

	require.NoError(t, os.Remove(filepath.Join(dir, firstKeyFile)))
	got, err = Prepare(ctx, s, dir, "")
	require.NoError(t, err)
	require.Empty(t, got, "taking the file away makes no new key")

	require.NoError(t, os.WriteFile(filepath.Join(dir, firstKeyFile), []byte("rubbish"), 0o600))
	_, err = Prepare(ctx, s, dir, "")
	require.ErrorContains(t, err, "holds no API key")
	require.NotContains(t, err.Error(), "rubbish")
}

func TestPrepareBringsTheKeyIntoAnEmptyStore(t *testing.T) {
	dir := t.TempDir()
	key, err := Prepare(t.Context(), openStore(t, dir), dir, "")
	require.NoError(t, err)
	// The operator moved a damaged store aside.
	fresh := openStore(t, t.TempDir())
	again, err := Prepare(t.Context(), fresh, dir, "")
	require.NoError(t, err)
	require.Equal(t, key, again)
	_, _, found, err := fresh.Keys.TeamByKeyHash(t.Context(), auth.Hash(key))
	require.NoError(t, err)
	require.True(t, found)
}
