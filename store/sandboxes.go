package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/isthmus/isthmus/store/kv"
)

// Sandboxes keeps sandbox records and their indexes, each change in one transaction:
//
//	sandbox/<id>                            the record
//	sandbox.team/<team>/<start>/<id>        → the state that is shown, for lists; a sandbox in the making has start 0
//	sandbox.end/<end>/<id>                  deadlines of running sandboxes
//	sandbox.box/<pool>/<box>                → id
//	sandbox.paused/<team>/<id>              paused sandboxes, which do not count towards the team's limit
//	sandbox.guard/<team>                    written by every create and resume, so that two see each other
type Sandboxes struct {
	engine kv.Engine
}

const (
	sandboxPrefix = "sandbox/"
	teamPrefix    = "sandbox.team/"
	endPrefix     = "sandbox.end/"
	pausedPrefix  = "sandbox.paused/"
	boxPrefix     = "sandbox.box/"
	guardPrefix   = "sandbox.guard/"
)

// Get returns one record, or ErrNotFound.
func (s Sandboxes) Get(ctx context.Context, id string) (Sandbox, error) {
	var sandbox Sandbox
	err := s.engine.View(ctx, func(r kv.Reader) (err error) {
		sandbox, err = load[Sandbox](r, sandboxPrefix+id)
		return err
	})
	return sandbox, err
}

// ByBox returns the record that is bound to a box, or ErrNotFound.
func (s Sandboxes) ByBox(ctx context.Context, pool, boxID string) (Sandbox, error) {
	var sandbox Sandbox
	err := s.engine.View(ctx, func(r kv.Reader) error {
		id, err := load[string](r, boxKey(pool, boxID))
		if err != nil {
			return err
		}
		sandbox, err = load[Sandbox](r, sandboxPrefix+id)
		return err
	})
	return sandbox, err
}

// CountIn returns the number of sandboxes that are bound to a pool, in whatever state.
func (s Sandboxes) CountIn(ctx context.Context, pool string) (int, error) {
	count := 0
	err := s.engine.View(ctx, func(r kv.Reader) error {
		count = 0
		for _, err := range r.Scan(kv.Range{Prefix: boxKey(pool, ""), KeysOnly: true}) {
			if err != nil {
				return err
			}
			count++
		}
		return nil
	})
	return count, err
}

// Change rewrites one record. fn may be run several times and changes only what it is given; its error is
// returned as it is and nothing is written. It returns the record as it then is.
func (s Sandboxes) Change(ctx context.Context, id string, fn func(*Sandbox) error) (Sandbox, error) {
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
		return replace(tx, old, sandbox)
	})
	return sandbox, err
}

// Delete removes a record and its indexes. One that is not there is success.
func (s Sandboxes) Delete(ctx context.Context, id string) error {
	return s.engine.Update(ctx, func(tx kv.Tx) error { return remove(tx, id) })
}

// All returns every record, in order of id.
func (s Sandboxes) All(ctx context.Context) ([]Sandbox, error) {
	return list[Sandbox](ctx, s.engine, sandboxPrefix)
}

// Due returns the ids of running sandboxes whose deadline is not after now, the most overdue first, at most
// limit; and the deadline that comes next after those, zero when there is none.
func (s Sandboxes) Due(ctx context.Context, now time.Time, limit int) (due []string, next time.Time, err error) {
	err = s.engine.View(ctx, func(r kv.Reader) error {
		due, next = nil, time.Time{}
		for entry, err := range r.Scan(kv.Range{Prefix: endPrefix, KeysOnly: true}) {
			if err != nil {
				return err
			}
			end, id, _ := strings.Cut(strings.TrimPrefix(entry.Key, endPrefix), "/")
			at, err := unstamp(end)
			if err != nil {
				return err
			}
			if at.After(now) || len(due) == limit {
				next = at
				return nil
			}
			due = append(due, id)
		}
		return nil
	})
	return due, next, err
}

// replace writes the record and moves its indexes.
func replace(tx kv.Tx, old, sandbox Sandbox) error {
	after := indexes(sandbox)
	for _, key := range indexes(old) {
		if slices.Contains(after, key) {
			continue
		}
		if err := tx.Delete(key); err != nil {
			return err
		}
	}
	return insert(tx, sandbox)
}

// insert writes the record and its indexes.
func insert(tx kv.Tx, sandbox Sandbox) error {
	for _, key := range indexes(sandbox) {
		value := sandbox.ID
		if strings.HasPrefix(key, teamPrefix) {
			value = string(sandbox.State.Shown())
		}
		if err := save(tx, key, value, 0); err != nil {
			return err
		}
	}
	return save(tx, sandboxPrefix+sandbox.ID, sandbox, 0)
}

// remove deletes the record and its indexes. One that is not there is success.
func remove(tx kv.Tx, id string) error {
	old, err := load[Sandbox](tx, sandboxPrefix+id)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, key := range indexes(old) {
		if err := tx.Delete(key); err != nil {
			return err
		}
	}
	return tx.Delete(sandboxPrefix + id)
}

// indexes lists the keys that point to a record.
func indexes(s Sandbox) []string {
	keys := []string{teamKey(s.TeamID, s.StartedAt, s.ID)}
	if s.BoxID != "" {
		keys = append(keys, boxKey(s.Pool, s.BoxID))
	}
	if s.State == StateRunning {
		keys = append(keys, endPrefix+stamp(s.EndAt)+"/"+s.ID)
	}
	if s.State == StatePaused {
		keys = append(keys, pausedPrefix+s.TeamID+"/"+s.ID)
	}
	return keys
}

func teamKey(team string, start time.Time, id string) string {
	return teamPrefix + team + "/" + stamp(start) + "/" + id
}

func boxKey(pool, box string) string { return boxPrefix + pool + "/" + box }
