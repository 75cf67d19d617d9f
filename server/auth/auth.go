// Package auth finds out which team a call of the control plane comes from, by its API key.
package auth

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/translate"
)

// header carries the key.
const header = "X-API-Key"

// Keys finds keys; package store implements it.
type Keys interface {
	// TeamByKeyHash returns the key of this hash and its team; false when there is none.
	TeamByKeyHash(ctx context.Context, hash string) (store.Team, store.Key, bool, error)
}

// Identity is who calls.
type Identity struct {
	Team store.Team
	Key  store.Key

	presented string
}

// Presented returns the key itself, for the one answer that repeats it to whoever sent it.
func (i Identity) Presented() string { return i.presented }

// LogValue names team and key without the key itself.
func (i Identity) LogValue() slog.Value {
	return slog.GroupValue(slog.String("team", i.Team.ID), slog.String("key", i.Key.ID))
}

// Authenticator checks credentials against stored keys.
type Authenticator struct {
	keys Keys
}

// New returns an authenticator over keys.
func New(keys Keys) *Authenticator { return &Authenticator{keys: keys} }

// APIKey identifies a request by X-API-Key alone: whatever else it carries, an Authorization header of an
// old client for one, is not looked at. It returns a *translate.Failure with 401, or an error of the store.
func (a *Authenticator) APIKey(r *http.Request) (Identity, error) {
	values := r.Header.Values(header)
	switch {
	case len(values) == 0 || values[0] == "":
		return Identity{}, refused("No API key: send it in the header X-API-Key.")
	case len(values) > 1:
		return Identity{}, refused("More than one X-API-Key header: send one.")
	}
	return a.identify(r.Context(), values[0])
}

// APIKeyOrBearer identifies a request by X-API-Key, or by an API key as a bearer token, which is what the
// CLI sends when it asks for its teams.
func (a *Authenticator) APIKeyOrBearer(r *http.Request) (Identity, error) {
	if r.Header.Get(header) != "" {
		return a.APIKey(r)
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return Identity{}, refused("No API key: send it in the header X-API-Key, or as a bearer token.")
	}
	return a.identify(r.Context(), strings.TrimSpace(token))
}

// identify looks a key up. A key of another form is not looked up at all; the answer is the same, so that
// nothing can be learned from it.
func (a *Authenticator) identify(ctx context.Context, key string) (Identity, error) {
	unknown := refused("This API key is not known here: check E2B_API_KEY, or make one with `isthmus keys create`.")
	if !Valid(key) {
		return Identity{}, unknown
	}
	team, record, found, err := a.keys.TeamByKeyHash(ctx, Hash(key))
	switch {
	case err != nil:
		return Identity{}, err
	case !found:
		return Identity{}, unknown
	}
	return Identity{Team: team, Key: record, presented: key}, nil
}

// Still returns nil while the key of an identity that was found is valid, and the error of APIKey afterwards.
func (a *Authenticator) Still(ctx context.Context, was Identity) error {
	now, err := a.identify(ctx, was.presented)
	if err == nil && now.Key.ID != was.Key.ID {
		return refused("This API key was replaced meanwhile: send the call again.")
	}
	return err
}

func refused(message string) error {
	return &translate.Failure{Status: http.StatusUnauthorized, Message: message}
}

type contextKey struct{}

// With returns a context that carries the identity.
func With(ctx context.Context, identity Identity) context.Context {
	return context.WithValue(ctx, contextKey{}, identity)
}

// From returns the identity in a context; the zero value when the call needed none.
func From(ctx context.Context) Identity {
	identity, _ := ctx.Value(contextKey{}).(Identity)
	return identity
}
