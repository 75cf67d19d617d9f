package store

import (
	"context"
	"errors"
	"time"

	"github.com/isthmus/isthmus/store/kv"
)

// createPrefix is followed by <team>/<idempotency key>; the value is a CreateKey.
const createPrefix = "sandbox.create/"

// CreateKeyLife is how long an idempotency key is remembered.
const CreateKeyLife = 24 * time.Hour

// CreateKey remembers which sandbox a client's idempotency key made.
type CreateKey struct {
	SandboxID   string    `json:"sandboxID"`
	Fingerprint string    `json:"fingerprint"` // of the request body
	CreatedAt   time.Time `json:"createdAt"`
}

// Intent is a sandbox that is about to be made.
type Intent struct {
	Sandbox Sandbox
	// Key is the client's idempotency key within its team; empty: none. Fingerprint belongs to it.
	Key, Fingerprint string
	// TeamLimit is the largest number of sandboxes of the team that are not paused; 0: no limit.
	TeamLimit int
}

// Begin writes the intent and its idempotency key in one transaction. When the key was used before, nothing
// is written and what it made is returned. ErrTeamLimit and ErrTooBig are refusals.
func (s Sandboxes) Begin(ctx context.Context, in Intent) (*CreateKey, error) {
	var earlier *CreateKey
	err := s.engine.Update(ctx, func(tx kv.Tx) (err error) {
		earlier, err = earlierCreate(tx, in)
		if err != nil || earlier != nil {
			return err
		}
		if err := admit(tx, in); err != nil {
			return err
		}
		if in.Key != "" {
			key := CreateKey{SandboxID: in.Sandbox.ID, Fingerprint: in.Fingerprint, CreatedAt: in.Sandbox.CreatedAt}
			if err := save(tx, createKey(in.Sandbox.TeamID, in.Key), key, CreateKeyLife); err != nil {
				return err
			}
		}
		return insert(tx, in.Sandbox)
	})
	return earlier, err
}

// Abandon removes an intent that made nothing, with its idempotency key in one transaction, so that a repeat may try again.
func (s Sandboxes) Abandon(ctx context.Context, sandbox Sandbox) error {
	return s.engine.Update(ctx, func(tx kv.Tx) error {
		if err := remove(tx, sandbox.ID); err != nil || sandbox.CreateKey == "" {
			return err
		}
		name := createKey(sandbox.TeamID, sandbox.CreateKey)
		key, err := load[CreateKey](tx, name)
		if errors.Is(err, ErrNotFound) || (err == nil && key.SandboxID != sandbox.ID) {
			return nil
		}
		if err != nil {
			return err
		}
		return tx.Delete(name)
	})
}

func earlierCreate(tx kv.Tx, in Intent) (*CreateKey, error) {
	if in.Key == "" {
		return nil, nil
	}
	key, err := load[CreateKey](tx, createKey(in.Sandbox.TeamID, in.Key))
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &key, nil
}

// admit refuses an id that is taken, and a team that is full.
func admit(tx kv.Tx, in Intent) error {
	if taken, err := exists(tx, sandboxPrefix+in.Sandbox.ID); err != nil || taken {
		return errors.Join(err, ErrExists)
	}
	return withinTeam(tx, in.Sandbox, in.TeamLimit)
}

// withinTeam counts the team's sandboxes that are not paused. The guard makes two additions of one team conflict,
// because a scan alone does not see what another transaction adds to its range.
func withinTeam(tx kv.Tx, sandbox Sandbox, limit int) error {
	if limit == 0 {
		return nil
	}
	guard := guardPrefix + sandbox.TeamID
	if _, err := exists(tx, guard); err != nil {
		return err
	}
	all, err := count(tx, teamPrefix+sandbox.TeamID+"/")
	if err != nil {
		return err
	}
	paused, err := count(tx, pausedPrefix+sandbox.TeamID+"/")
	if err != nil {
		return err
	}
	if all-paused >= limit {
		return ErrTeamLimit
	}
	return save(tx, guard, sandbox.ID, 0)
}

// count returns the number of keys with a prefix.
func count(r kv.Reader, prefix string) (n int, _ error) {
	for _, err := range r.Scan(kv.Range{Prefix: prefix, KeysOnly: true}) {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// Wake is Change for a paused sandbox that is to count towards its team's limit again. ErrTeamLimit: it may not. A
// limit of 0 is none.
func (s Sandboxes) Wake(ctx context.Context, id string, teamLimit int, fn func(*Sandbox) error) (Sandbox, error) {
	var sandbox Sandbox
	err := s.engine.Update(ctx, func(tx kv.Tx) error {
		old, err := load[Sandbox](tx, sandboxPrefix+id)
		if err != nil {
			return err
		}
		sandbox = old
		if err := fn(&sandbox); err != nil {
			return err
		}
		if err := withinTeam(tx, sandbox, teamLimit); err != nil {
			return err
		}
		return replace(tx, old, sandbox)
	})
	return sandbox, err
}

func createKey(team, key string) string { return createPrefix + team + "/" + key }
