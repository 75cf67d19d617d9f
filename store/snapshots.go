package store

import (
	"context"
	"errors"
	"strings"

	"github.com/isthmus/isthmus/store/kv"
)

// Snapshots keeps snapshot records and their indexes, each change in one transaction:
//
//	snapshot/<id>                       the record
//	snapshot.team/<team>/<created>/<id> for lists
//	snapshot.name/<team>/<name:tag>     → id, of those that are ready
type Snapshots struct {
	engine kv.Engine
}

const (
	snapshotPrefix     = "snapshot/"
	snapshotTeamPrefix = "snapshot.team/"
	snapshotNamePrefix = "snapshot.name/"
)

// Add writes a new record.
func (s Snapshots) Add(ctx context.Context, snapshot Snapshot) error {
	return s.engine.Update(ctx, func(tx kv.Tx) error {
		if taken, err := exists(tx, snapshotPrefix+snapshot.ID); err != nil || taken {
			return errors.Join(err, ErrExists)
		}
		if err := save(tx, snapshotTeamKey(snapshot), snapshot.ID, 0); err != nil {
			return err
		}
		return save(tx, snapshotPrefix+snapshot.ID, snapshot, 0)
	})
}

// Get returns one record, or ErrNotFound.
func (s Snapshots) Get(ctx context.Context, id string) (Snapshot, error) {
	var snapshot Snapshot
	err := s.engine.View(ctx, func(r kv.Reader) (err error) {
		snapshot, err = load[Snapshot](r, snapshotPrefix+id)
		return err
	})
	return snapshot, err
}

// Find returns the team's snapshot that is ready, by its id or its name; a name without a tag has the tag default.
// Or ErrNotFound.
func (s Snapshots) Find(ctx context.Context, teamID, reference string) (Snapshot, error) {
	var snapshot Snapshot
	err := s.engine.View(ctx, func(r kv.Reader) error {
		name, id := reference, strings.TrimSuffix(reference, ":default")
		if !strings.Contains(name, ":") {
			name += ":default"
		}
		named, err := load[string](r, snapshotNameKey(teamID, name))
		if err == nil {
			id = named
		} else if !errors.Is(err, ErrNotFound) {
			return err
		}
		snapshot, err = load[Snapshot](r, snapshotPrefix+id)
		if err == nil && (snapshot.TeamID != teamID || snapshot.State != SnapshotReady) {
			return ErrNotFound
		}
		return err
	})
	return snapshot, err
}

// Change rewrites one record, as Sandboxes.Change does. One that becomes ready takes its name over from the one that
// had it; one that is not ready any more has none. One that was being removed and is ready again leaves its name to
// whoever took it meanwhile.
func (s Snapshots) Change(ctx context.Context, id string, fn func(*Snapshot) error) (Snapshot, error) {
	var snapshot Snapshot
	err := s.engine.Update(ctx, func(tx kv.Tx) error {
		var err error
		if snapshot, err = load[Snapshot](tx, snapshotPrefix+id); err != nil {
			return err
		}
		was := snapshot.State
		if err := fn(&snapshot); err != nil {
			return err
		}
		if was == SnapshotRemoving && snapshot.State == SnapshotReady {
			if snapshot.Name, err = untaken(tx, snapshot); err != nil {
				return err
			}
		}
		if err := name(tx, snapshot); err != nil {
			return err
		}
		return save(tx, snapshotPrefix+id, snapshot, 0)
	})
	return snapshot, err
}

// untaken is the name of a snapshot, or empty where another has it.
func untaken(r kv.Reader, snapshot Snapshot) (string, error) {
	holder, err := load[string](r, snapshotNameKey(snapshot.TeamID, snapshot.Name))
	switch {
	case errors.Is(err, ErrNotFound) || err == nil && holder == snapshot.ID:
		return snapshot.Name, nil
	case err != nil:
		return snapshot.Name, err
	}
	return "", nil
}

// name moves the name of a snapshot to where it belongs.
func name(tx kv.Tx, snapshot Snapshot) error {
	if snapshot.Name == "" {
		return nil
	}
	key := snapshotNameKey(snapshot.TeamID, snapshot.Name)
	holder, err := load[string](tx, key)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if snapshot.State != SnapshotReady {
		if holder == snapshot.ID {
			return tx.Delete(key)
		}
		return nil
	}
	if holder != "" && holder != snapshot.ID {
		former, err := load[Snapshot](tx, snapshotPrefix+holder)
		if err != nil {
			return err
		}
		former.Name = ""
		if err := save(tx, snapshotPrefix+holder, former, 0); err != nil {
			return err
		}
	}
	return save(tx, key, snapshot.ID, 0)
}

// Delete removes a record with its name. One that is not there is success.
func (s Snapshots) Delete(ctx context.Context, id string) error {
	return s.engine.Update(ctx, func(tx kv.Tx) error {
		snapshot, err := load[Snapshot](tx, snapshotPrefix+id)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		snapshot.State = SnapshotRemoving
		if err := name(tx, snapshot); err != nil {
			return err
		}
		if err := tx.Delete(snapshotTeamKey(snapshot)); err != nil {
			return err
		}
		return tx.Delete(snapshotPrefix + id)
	})
}

// All returns every record, in order of id.
func (s Snapshots) All(ctx context.Context) ([]Snapshot, error) {
	return list[Snapshot](ctx, s.engine, snapshotPrefix)
}

// List selects and pages.
func (s Snapshots) List(ctx context.Context, q SnapshotQuery) (SnapshotPage, error) {
	var page SnapshotPage
	err := s.engine.View(ctx, func(r kv.Reader) error {
		page = SnapshotPage{}
		var ids []string
		for entry, err := range r.Scan(kv.Range{Prefix: snapshotTeamPrefix + q.TeamID + "/", Reverse: true, KeysOnly: true}) {
			if err != nil {
				return err
			}
			ids = append(ids, entry.Key[strings.LastIndexByte(entry.Key, '/')+1:])
		}
		for _, id := range ids {
			snapshot, err := load[Snapshot](r, snapshotPrefix+id)
			if err != nil {
				return err
			}
			if full := page.add(q, snapshot); full {
				return nil
			}
		}
		return nil
	})
	return page, err
}

// add puts a snapshot on the page when it belongs there; full says that the page ends before it.
func (p *SnapshotPage) add(q SnapshotQuery, s Snapshot) (full bool) {
	if s.State != SnapshotReady || q.SandboxID != "" && s.SandboxID != q.SandboxID {
		return false
	}
	if q.Name != "" && (len(p.Snapshots) > 0 || !s.named(q.Name)) {
		return false
	}
	if after := q.After; after != nil {
		order := s.CreatedAt.Compare(after.StartedAt)
		if order > 0 || order == 0 && s.ID >= after.ID {
			return false
		}
	}
	if q.Limit > 0 && len(p.Snapshots) == q.Limit {
		last := p.Snapshots[len(p.Snapshots)-1]
		p.Next = &SandboxCursor{StartedAt: last.CreatedAt, ID: last.ID}
		return true
	}
	p.Snapshots = append(p.Snapshots, s)
	return false
}

// named reports whether a reference of a query means the snapshot.
func (s Snapshot) named(reference string) bool {
	name, _, _ := strings.Cut(s.Name, ":")
	switch reference {
	case s.Name, name:
		return s.Name != ""
	case s.ID, s.ID + ":default":
		return true
	}
	return false
}

func snapshotTeamKey(s Snapshot) string {
	return snapshotTeamPrefix + s.TeamID + "/" + stamp(s.CreatedAt) + "/" + s.ID
}

func snapshotNameKey(team, name string) string { return snapshotNamePrefix + team + "/" + name }
