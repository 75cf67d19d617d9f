package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/isthmus/isthmus/store/kv"
)

// The errors that callers tell apart.
var (
	// ErrNotFound: there is no such record.
	ErrNotFound = errors.New("store: no such record")
	// ErrExists: a record of this id, name or hash is there already.
	ErrExists = errors.New("store: it exists already")
	// ErrTeamLimit: the team has as many sandboxes as it may have.
	ErrTeamLimit = errors.New("store: the team's limit of sandboxes is reached")
	// ErrTooBig: the record is larger than the store takes (about 1 MiB).
	ErrTooBig = errors.New("store: the record is too big")
	// ErrFull: the disk of the data folder has no room.
	ErrFull = kv.ErrFull
)

// format is the version of the layout below. A store of a newer one is not touched.
const format = "1"

// Store groups the records of one engine.
type Store struct {
	Sandboxes Sandboxes
	Snapshots Snapshots
	Teams     Teams
	Keys      Keys
	Metrics   Metrics
	Logs      Logs
	Decisions Decisions
	engine    kv.Engine
}

// Open checks that this program understands what the engine holds, and marks an empty one.
func Open(ctx context.Context, engine kv.Engine) (*Store, error) {
	err := engine.Update(ctx, func(tx kv.Tx) error {
		value, err := tx.Get("format")
		switch {
		case errors.Is(err, kv.ErrNotFound):
			return tx.Set("format", []byte(format), 0)
		case err != nil:
			return err
		case string(value) != format:
			return fmt.Errorf("the store has layout %q and this isthmus knows %q: use the release that wrote it",
				value, format)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &Store{
		Sandboxes: Sandboxes{engine},
		Snapshots: Snapshots{engine},
		Teams:     Teams{engine},
		Keys:      Keys{engine},
		Metrics:   Metrics{engine},
		Logs:      Logs{engine},
		Decisions: Decisions{engine},
		engine:    engine,
	}, nil
}

// Engine is the engine below, for backup and housekeeping.
func (s *Store) Engine() kv.Engine { return s.engine }

// load reads one record; ErrNotFound when there is none.
func load[T any](r kv.Reader, key string) (T, error) {
	var value T
	raw, err := r.Get(key)
	if errors.Is(err, kv.ErrNotFound) {
		return value, ErrNotFound
	}
	if err != nil {
		return value, err
	}
	return value, decode(key, raw, &value)
}

// save writes one record. A ttl of 0 keeps it for ever.
func save(tx kv.Tx, key string, value any, ttl time.Duration) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	err = tx.Set(key, raw, ttl)
	if errors.Is(err, kv.ErrTooBig) {
		return ErrTooBig
	}
	return err
}

func decode(key string, raw []byte, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("store: record %q: %w", key, err)
	}
	return nil
}

// exists reports whether there is such a key.
func exists(r kv.Reader, key string) (bool, error) {
	_, err := r.Get(key)
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// stamp writes a time so that byte order is time order. Times before 1970 count as 1970.
func stamp(t time.Time) string {
	var nanos int64
	if !t.IsZero() {
		nanos = max(t.UnixNano(), 0)
	}
	return fmt.Sprintf("%020d", nanos)
}

// number writes a counter so that byte order is numeric order.
func number(n uint64) string { return fmt.Sprintf("%020d", n) }

// unstamp reads what stamp wrote.
func unstamp(s string) (time.Time, error) {
	nanos, err := strconv.ParseInt(s, 10, 64)
	return time.Unix(0, nanos).UTC(), err
}
