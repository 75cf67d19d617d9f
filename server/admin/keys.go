package admin

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/isthmus/isthmus/server/auth"
	"github.com/isthmus/isthmus/store"
)

// Key is one line of the list of keys.
type Key struct {
	ID        string    `json:"id"`
	TeamID    string    `json:"teamID"`
	Team      string    `json:"team"`
	Name      string    `json:"name"`
	Mask      string    `json:"mask"`
	CreatedAt time.Time `json:"createdAt"`
	// Key is the key itself, in the answer to its making and never again.
	Key string `json:"key,omitempty"`
}

// NewKey asks for a key.
type NewKey struct {
	Team string `json:"team"` // name or id; empty: the default team
	Name string `json:"name"` // for people, at most 128 bytes
}

// findKey returns the key of an id or a name; the zero key for none.
func (a *Admin) findKey(ctx context.Context, idOrName string) (store.Key, error) {
	if idOrName == "" {
		return store.Key{}, nil
	}
	keys, err := a.config.Store.Keys.List(ctx)
	if err != nil {
		return store.Key{}, err
	}
	i := slices.IndexFunc(keys, func(key store.Key) bool { return key.ID == idOrName })
	if i < 0 {
		i = slices.IndexFunc(keys, func(key store.Key) bool { return key.Name == idOrName })
	}
	if i < 0 {
		return store.Key{}, store.ErrNotFound
	}
	return keys[i], nil
}

func (a *Admin) listKeys(w http.ResponseWriter, r *http.Request) {
	keys, err := a.config.Store.Keys.List(r.Context())
	if err != nil {
		a.fail(w, r, err)
		return
	}
	list := make([]Key, 0, len(keys))
	for _, key := range keys {
		team, err := a.config.Store.Teams.Get(r.Context(), key.TeamID)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		list = append(list, shown(key, team))
	}
	answer(w, http.StatusOK, list)
}

func (a *Admin) createKey(w http.ResponseWriter, r *http.Request) {
	var ask NewKey
	if !read(w, r, &ask) {
		return
	}
	const maxName = 128
	if len(ask.Name) > maxName {
		refuse(w, http.StatusBadRequest, "name may have at most 128 bytes")
		return
	}
	team, err := findTeam(r.Context(), a.config.Store, ask.Team)
	if errors.Is(err, store.ErrNotFound) {
		refuse(w, http.StatusNotFound, "there is no team "+ask.Team+": `isthmus teams list` shows those that exist")
		return
	}
	if err != nil {
		a.fail(w, r, err)
		return
	}
	text := auth.NewKey()
	key := record(text, team.ID, ask.Name)
	if err := a.config.Store.Keys.Add(r.Context(), key); err != nil {
		a.fail(w, r, err)
		return
	}
	made := shown(key, team)
	made.Key = text
	answer(w, http.StatusCreated, made)
}

func (a *Admin) revokeKey(w http.ResponseWriter, r *http.Request) {
	key, err := a.config.Store.Keys.Get(r.Context(), r.PathValue("id"))
	if err == nil {
		err = a.config.Store.Keys.Revoke(r.Context(), key.ID)
	}
	if err == nil {
		// The file of the first key must not bring a revoked key back.
		err = forgetFirstKey(a.config.DataDir, key.Hash)
	}
	if err != nil {
		a.fail(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// findTeam finds a team by name or id; the default team for "".
func findTeam(ctx context.Context, s *store.Store, name string) (store.Team, error) {
	if name == "" {
		name = defaultTeam
	}
	team, err := s.Teams.ByName(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return s.Teams.Get(ctx, name)
	}
	return team, err
}

// record is what is kept of a key.
func record(key, teamID, name string) store.Key {
	return store.Key{ID: uuid.NewString(), TeamID: teamID, Name: name, Hash: auth.Hash(key), Mask: auth.Mask(key), CreatedAt: time.Now().UTC()}
}

func shown(key store.Key, team store.Team) Key {
	return Key{ID: key.ID, TeamID: key.TeamID, Team: team.Name, Name: key.Name, Mask: key.Mask, CreatedAt: key.CreatedAt}
}
