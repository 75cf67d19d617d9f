package store

import (
	"context"
	"errors"

	"github.com/isthmus/isthmus/store/kv"
)

// Keys keeps API keys: key/<id> is the record, key.hash/<hash> its id.
type Keys struct {
	engine kv.Engine
}

const (
	keyRecord = "key/"
	keyHash   = "key.hash/"
)

// Add writes a new key. ErrExists when the same key is there already, of whatever team.
func (k Keys) Add(ctx context.Context, key Key) error {
	return k.engine.Update(ctx, func(tx kv.Tx) error {
		taken, err := exists(tx, keyHash+key.Hash)
		if err != nil {
			return err
		}
		if taken {
			return ErrExists
		}
		if err := save(tx, keyHash+key.Hash, key.ID, 0); err != nil {
			return err
		}
		return save(tx, keyRecord+key.ID, key, 0)
	})
}

// Get returns one key by id, or ErrNotFound.
func (k Keys) Get(ctx context.Context, id string) (Key, error) {
	var key Key
	err := k.engine.View(ctx, func(r kv.Reader) (err error) {
		key, err = load[Key](r, keyRecord+id)
		return err
	})
	return key, err
}

// TeamByKeyHash returns the key of this hash and its team; false when there is none.
func (k Keys) TeamByKeyHash(ctx context.Context, hash string) (Team, Key, bool, error) {
	var team Team
	var key Key
	err := k.engine.View(ctx, func(r kv.Reader) error {
		id, err := load[string](r, keyHash+hash)
		if err != nil {
			return err
		}
		if key, err = load[Key](r, keyRecord+id); err != nil {
			return err
		}
		team, err = load[Team](r, teamRecord+key.TeamID)
		return err
	})
	if errors.Is(err, ErrNotFound) {
		return Team{}, Key{}, false, nil
	}
	return team, key, err == nil, err
}

// List returns all keys in order of id.
func (k Keys) List(ctx context.Context) ([]Key, error) {
	return list[Key](ctx, k.engine, keyRecord)
}

// Revoke removes a key; ErrNotFound when there is none.
func (k Keys) Revoke(ctx context.Context, id string) error {
	return k.engine.Update(ctx, func(tx kv.Tx) error {
		key, err := load[Key](tx, keyRecord+id)
		if err != nil {
			return err
		}
		if err := tx.Delete(keyHash + key.Hash); err != nil {
			return err
		}
		return tx.Delete(keyRecord + id)
	})
}
