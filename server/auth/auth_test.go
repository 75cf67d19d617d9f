package auth_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/isthmus/isthmus/server/auth"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/translate"
	"github.com/stretchr/testify/require"
)

// oneKey is a store with one key in it, or with a fault.
type oneKey struct {
	key   string
	fault error
	asked int
}

func (o *oneKey) TeamByKeyHash(_ context.Context, hash string) (store.Team, store.Key, bool, error) {
	o.asked++
	return store.Team{ID: "team"}, store.Key{ID: "key"}, hash == auth.Hash(o.key), o.fault
}

func TestKeyForms(t *testing.T) {
	key := auth.NewKey()
	require.True(t, auth.Valid(key))
	require.NotEqual(t, key, auth.NewKey())
	require.Len(t, auth.Hash(key), 64)
	require.Equal(t, key[:6]+"…"+key[40:], auth.Mask(key))
	require.Equal(t, "…", auth.Mask("nonsense"))
	for _, bad := range []string{
		"", "e2b_", key[:43], key + "0", strings.ToUpper(key), "sk_" + key, " " + key, key[:43] + "g", key[:43] + "\n",
		"e2b-" + key[4:],
	} {
		require.False(t, auth.Valid(bad), bad)
	}
}

func TestAPIKey(t *testing.T) {
	key := auth.NewKey()
	keys := &oneKey{key: key}
	authenticator := auth.New(keys)
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("x-api-key", key)
	r.Header.Set("Authorization", "Bearer something else")
	identity, err := authenticator.APIKey(r)
	require.NoError(t, err)
	require.Equal(t, "team", identity.Team.ID)
	require.Equal(t, key, identity.Presented())
	require.Equal(t, identity, auth.From(auth.With(t.Context(), identity)))
	require.Empty(t, auth.From(t.Context()).Team.ID)

	r.Header.Set("X-API-Key", "not a key")
	_, err = authenticator.APIKey(r)
	refused(t, err)
	require.Equal(t, 1, keys.asked, "what is no key is not looked up")

	r.Header.Set("X-API-Key", auth.NewKey())
	_, err = authenticator.APIKey(r)
	refused(t, err)

	keys.fault = errors.New("store is closed")
	_, err = authenticator.APIKey(r)
	require.ErrorIs(t, err, keys.fault, "a fault of the store is no 401")
}

func TestBearer(t *testing.T) {
	key := auth.NewKey()
	authenticator := auth.New(&oneKey{key: key})
	for header, ok := range map[string]bool{
		"Bearer " + key: true, "bearer " + key: true, "Bearer  " + key: true,
		"": false, "Bearer": false, "Bearer ": false, "Basic " + key: false, key: false, "Bearer " + key + "x": false,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Authorization", header)
		_, err := authenticator.APIKeyOrBearer(r)
		if ok {
			require.NoError(t, err, header)
		} else {
			refused(t, err)
		}
	}
}

func TestIdentityDoesNotLogItsKey(t *testing.T) {
	key := auth.NewKey()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-API-Key", key)
	identity, err := auth.New(&oneKey{key: key}).APIKey(r)
	require.NoError(t, err)
	var out bytes.Buffer
	slog.New(slog.NewTextHandler(&out, nil)).Info("call", "caller", identity)
	require.Contains(t, out.String(), "caller.team=team caller.key=key")
	require.NotContains(t, out.String(), key)
}

func refused(t *testing.T, err error) {
	t.Helper()
	var failure *translate.Failure
	require.ErrorAs(t, err, &failure)
	require.Equal(t, http.StatusUnauthorized, failure.Status)
}
