package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/fault"
	"github.com/isthmus/isthmus/server/config"
	"github.com/isthmus/isthmus/server/fleet"
)

// cloud is a pool of an E2B-compatible server, which nobody calls.
func cloud(credential config.Credential) config.Pool {
	return config.Pool{Name: "cloud", Provider: config.ProviderE2B, APIURL: "https://api.example.com", Credential: credential,
		Isolation: "microvm", Templates: map[string]string{"base": "other"}}
}

func newTestPlaces() *places { return newPlaces(fleet.Secrets{}, slog.New(slog.DiscardHandler)) }

func TestPlacesAreKept(t *testing.T) {
	t.Setenv("CLOUD_KEY", "e2b_0123")
	p := newTestPlaces()
	c := config.Config{Pools: []config.Pool{cloud(config.Credential{Env: "CLOUD_KEY"})}}
	first, keep, err := p.arrange(c)
	require.NoError(t, err)
	require.NoError(t, keep(true))
	require.Equal(t, "microvm", first[0].Facts.Isolation.Level)
	template, err := first[0].Provider.Resolve(t.Context(), "base")
	require.NoError(t, err, "without a call to the server")
	require.Equal(t, "base", template.Name)

	c.Pools[0].Draining, c.Pools[0].Weight = true, 3
	again, keep, err := p.arrange(c)
	require.NoError(t, err)
	require.NoError(t, keep(true))
	require.Same(t, first[0].Provider, again[0].Provider, "the account stays open")
	require.True(t, again[0].Facts.Draining)

	c.Pools[0].APIURL = "https://elsewhere.example.com"
	_, _, err = p.arrange(c)
	require.ErrorContains(t, err, "pool cloud: its provider, its addresses")
}

func TestKeysAreReadWhereTheyAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	read := keptIn(config.Credential{File: path}).read
	_, err := read()
	require.ErrorContains(t, err, "key")
	require.NoError(t, os.WriteFile(path, []byte(" first\n"), 0o600))
	key, err := read()
	require.NoError(t, err)
	require.Equal(t, "first", key)
	require.NoError(t, os.WriteFile(path, []byte("second"), 0o600))
	key, err = read()
	require.NoError(t, err)
	require.Equal(t, "second", key, "a new key needs no start")

	_, _, err = newTestPlaces().arrange(config.Config{Pools: []config.Pool{cloud(config.Credential{Env: "NO_SUCH_VARIABLE"})}})
	require.ErrorContains(t, err, "pool cloud: the variable NO_SUCH_VARIABLE")
	_, _, err = newTestPlaces().arrange(config.Config{Pools: []config.Pool{cloud(config.Credential{Env: "e2b_secret"})}})
	require.ErrorContains(t, err, "credential.env")
	require.NotContains(t, err.Error(), "secret", "a key in the place of its variable is not repeated")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err = read()
	require.ErrorContains(t, err, "is empty")
}

func TestAKeyMayMoveWhileThePoolServes(t *testing.T) {
	t.Setenv("OLD_KEY", "old")
	path := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(path, []byte("new"), 0o600))
	p := newTestPlaces()
	load := func(credential config.Credential) (func(bool) error, error) {
		_, keep, err := p.arrange(config.Config{Pools: []config.Pool{cloud(credential)}})
		return keep, err
	}
	now := func() string {
		key, err := p.open["cloud"].key.read()
		require.NoError(t, err)
		return key
	}
	keep, err := load(config.Credential{Env: "OLD_KEY"})
	require.NoError(t, err)
	require.NoError(t, keep(true))
	keep, err = load(config.Credential{File: path})
	require.NoError(t, err)
	require.NoError(t, keep(false))
	require.Equal(t, "old", now(), "a configuration that is not taken changes nothing")
	keep, err = load(config.Credential{File: path})
	require.NoError(t, err)
	require.NoError(t, keep(true))
	require.Equal(t, "new", now())
	_, err = load(config.Credential{Env: "NO_SUCH_VARIABLE"})
	require.ErrorContains(t, err, "NO_SUCH_VARIABLE")
	require.Equal(t, "new", now())
}

func TestFaultPlansAreRenewed(t *testing.T) {
	t.Setenv("CLOUD_KEY", "e2b_0123")
	plan := filepath.Join(t.TempDir(), "plan.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(plan, []byte(text), 0o600)) }
	write("rules: [{fault: outage}]")
	pool := cloud(config.Credential{Env: "CLOUD_KEY"})
	pool.Fault = plan
	c := config.Config{Pools: []config.Pool{pool}}
	p := newTestPlaces()
	pools, keep, err := p.arrange(c)
	require.NoError(t, err)
	require.NoError(t, keep(true))
	require.IsType(t, &fault.Provider{}, pools[0].Provider)
	_, err = pools[0].Provider.Resolve(t.Context(), "base")
	require.Equal(t, adapters.KindUnavailable, adapters.KindOf(err))

	write("rules: []")
	_, keep, err = p.arrange(c)
	require.NoError(t, err)
	_, err = pools[0].Provider.Resolve(t.Context(), "base")
	require.Error(t, err, "not before the reload is through")
	require.NoError(t, keep(true))
	_, err = pools[0].Provider.Resolve(t.Context(), "base")
	require.NoError(t, err)

	write("rules: [{fault: earthquake}]")
	_, _, err = p.arrange(c)
	require.ErrorContains(t, err, "pool cloud: fault:")
}

func TestPoolCommandsNeedAServer(t *testing.T) {
	data := t.TempDir()
	for _, args := range [][]string{{"pools"}, {"plan"}, {"reload"}, {"sandboxes", "show", "i1"}} {
		_, err := isthmus(t, append(args, "--data", data)...)
		require.ErrorContains(t, err, "no isthmus runs on the data folder", "%v", args)
	}
}

func TestPoolsOfThisMachineKeepTheirUserIDs(t *testing.T) {
	one := config.Pool{Name: "local", Provider: config.ProviderLocal, FirstID: 200_000}
	other := config.Pool{Name: "other", Provider: config.ProviderLocal, FirstID: 400_000}
	alone, both := config.Config{Pools: []config.Pool{one}}, config.Config{Pools: []config.Pool{one, other}}
	open := func(c config.Config) *place {
		return &place{account: accountOf(one), key: keptIn(one.Credential), firstID: c.FirstID(one), lastID: c.LastID(one)}
	}
	renewed := func(opened *place, c config.Config, pool config.Pool) error {
		_, err := opened.renew(c, pool)
		return err
	}
	require.NoError(t, renewed(open(alone), alone, one))
	require.NoError(t, renewed(open(both), both, one))
	require.NoError(t, renewed(open(both), alone, one), "the other's are not used before a restart")
	p := newTestPlaces()
	p.open["local"] = open(alone)
	_, _, err := p.arrange(both)
	require.ErrorContains(t, err, "pool local: its sandboxes may use user ids")
	moved := one
	moved.FirstID = 300_000
	require.ErrorContains(t, renewed(open(alone), alone, moved), "restart")
}

func TestNeighboursAreAllOtherFolders(t *testing.T) {
	c := config.Config{Data: t.TempDir()}
	first, second := config.Pool{Name: "local"}, config.Pool{Name: "second"}
	none, err := neighbours(c, first)
	require.NoError(t, err)
	require.Empty(t, none)
	past, own := filepath.Join(c.Data, "pools", "past"), localFolder(c, second)
	for _, folder := range []string{past, own} {
		require.NoError(t, os.MkdirAll(folder, 0o700))
	}
	all, err := neighbours(c, first)
	require.NoError(t, err)
	require.Equal(t, []string{past, own}, all)
	all, err = neighbours(c, second)
	require.NoError(t, err)
	require.Equal(t, []string{c.Data, past}, all)
}
