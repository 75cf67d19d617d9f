package store

import (
	"context"

	"github.com/isthmus/isthmus/store/kv"
)

// Teams keeps tenants: team/<id> is the record, team.name/<name> its id.
type Teams struct {
	engine kv.Engine
}

const (
	teamRecord = "team/"
	teamName   = "team.name/"
)

// Add writes a new team. ErrExists when its id or name is taken.
func (t Teams) Add(ctx context.Context, team Team) error {
	return t.engine.Update(ctx, func(tx kv.Tx) error {
		for _, key := range []string{teamRecord + team.ID, teamName + team.Name} {
			taken, err := exists(tx, key)
			if err != nil {
				return err
			}
			if taken {
				return ErrExists
			}
		}
		if err := save(tx, teamName+team.Name, team.ID, 0); err != nil {
			return err
		}
		return save(tx, teamRecord+team.ID, team, 0)
	})
}

// Get returns one team by id, or ErrNotFound.
func (t Teams) Get(ctx context.Context, id string) (Team, error) {
	var team Team
	err := t.engine.View(ctx, func(r kv.Reader) (err error) {
		team, err = load[Team](r, teamRecord+id)
		return err
	})
	return team, err
}

// ByName returns one team by its name, or ErrNotFound.
func (t Teams) ByName(ctx context.Context, name string) (Team, error) {
	var team Team
	err := t.engine.View(ctx, func(r kv.Reader) error {
		id, err := load[string](r, teamName+name)
		if err != nil {
			return err
		}
		team, err = load[Team](r, teamRecord+id)
		return err
	})
	return team, err
}

// List returns all teams in order of id.
func (t Teams) List(ctx context.Context) ([]Team, error) {
	return list[Team](ctx, t.engine, teamRecord)
}

// list returns every record under a prefix, in order of key.
func list[T any](ctx context.Context, engine kv.Engine, prefix string) ([]T, error) {
	var all []T
	err := engine.View(ctx, func(r kv.Reader) error {
		all = nil
		for entry, err := range r.Scan(kv.Range{Prefix: prefix}) {
			if err != nil {
				return err
			}
			var one T
			if err := decode(entry.Key, entry.Value, &one); err != nil {
				return err
			}
			all = append(all, one)
		}
		return nil
	})
	return all, err
}
