package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/isthmus/isthmus/server/auth"
	"github.com/isthmus/isthmus/store"
)

const (
	// defaultTeam is the name of the team that the first start makes.
	defaultTeam = "default"
	// firstKeyFile holds the key that the first start makes, in the data folder, mode 0600.
	firstKeyFile = "api-key"
	// givenKeyName is the name of the key that came from the environment.
	givenKeyName = "ISTHMUS_API_KEY"
	firstKeyName = "first start"
)

// Prepare makes sure that there is a default team and a way in, and returns the API key that this process
// knows in clear: the given one, else the one that the first start made and keeps in the data folder; empty
// when the operator has taken that file away.
func Prepare(ctx context.Context, s *store.Store, dataDir, given string) (string, error) {
	team, err := prepareTeam(ctx, s)
	if err != nil {
		return "", err
	}
	if given != "" {
		return given, adoptGiven(ctx, s, team, given)
	}
	if err := dropGiven(ctx, s, ""); err != nil {
		return "", err
	}
	return firstKey(ctx, s, team, filepath.Join(dataDir, firstKeyFile))
}

func prepareTeam(ctx context.Context, s *store.Store) (store.Team, error) {
	team, err := s.Teams.ByName(ctx, defaultTeam)
	if !errors.Is(err, store.ErrNotFound) {
		return team, err
	}
	team = store.Team{ID: uuid.NewString(), Name: defaultTeam, Default: true, CreatedAt: time.Now().UTC()}
	return team, s.Teams.Add(ctx, team)
}

// adoptGiven makes the given key valid, and an earlier given one invalid.
func adoptGiven(ctx context.Context, s *store.Store, team store.Team, given string) error {
	hash := auth.Hash(given)
	if err := dropGiven(ctx, s, hash); err != nil {
		return err
	}
	_, _, found, err := s.Keys.TeamByKeyHash(ctx, hash)
	if err != nil || found {
		return err
	}
	return s.Keys.Add(ctx, record(given, team.ID, givenKeyName))
}

// dropGiven revokes given keys other than the one of this hash.
func dropGiven(ctx context.Context, s *store.Store, keep string) error {
	keys, err := s.Keys.List(ctx)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if key.Name != givenKeyName || key.Hash == keep {
			continue
		}
		if err := s.Keys.Revoke(ctx, key.ID); err != nil {
			return err
		}
	}
	return nil
}

// firstKey reads or makes the key of the first start. A key in the file is only brought into a store that
// has no key at all, so that a revoked one stays revoked.
func firstKey(ctx context.Context, s *store.Store, team store.Team, path string) (string, error) {
	keys, err := s.Keys.List(ctx)
	if err != nil {
		return "", err
	}
	key, err := readFirstKey(path)
	if err != nil {
		return "", err
	}
	switch {
	case len(keys) > 0 && key == "":
		return "", nil
	case len(keys) > 0:
		_, _, found, err := s.Keys.TeamByKeyHash(ctx, auth.Hash(key))
		if err != nil || !found {
			return "", err
		}
		return key, nil
	case key == "":
		key = auth.NewKey()
		if err := writeFirstKey(path, key); err != nil {
			return "", err
		}
	}
	return key, s.Keys.Add(ctx, record(key, team.ID, firstKeyName))
}

func readFirstKey(path string) (string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	key := strings.TrimSpace(string(text))
	if !auth.Valid(key) {
		return "", fmt.Errorf("%s holds no API key (e2b_ and 40 digits of 0-9 and a-f): correct or remove it", path)
	}
	return key, nil
}

// writeFirstKey writes the file whole or not at all.
func writeFirstKey(path, key string) error {
	part, err := os.CreateTemp(filepath.Dir(path), ".api-key-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(part.Name()) }()
	_, err = part.WriteString(key + "\n")
	if err = errors.Join(err, part.Close()); err != nil {
		return err
	}
	return os.Rename(part.Name(), path)
}

// forgetFirstKey removes the file when it holds the key of this hash.
func forgetFirstKey(dataDir, hash string) error {
	path := filepath.Join(dataDir, firstKeyFile)
	key, err := readFirstKey(path)
	if err != nil || key == "" || auth.Hash(key) != hash {
		return err
	}
	return os.Remove(path)
}
