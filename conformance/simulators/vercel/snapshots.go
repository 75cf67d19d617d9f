//go:build linux

package vercel

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// snapshot is a copy of a session's files. info is guarded by the server's mu.
type snapshot struct {
	info Snapshot
	copy *machine.Snapshot
	// name is the sandbox that it was made of.
	name string
}

// keep copies a session that is about to end; its sandbox's changing is held.
func (s *Server) keep(ctx context.Context, one *session, life *int64, method string) (*snapshot, error) {
	copied, err := one.box.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	b := one.sandbox
	made := &snapshot{copy: copied, name: b.info.Name, info: Snapshot{
		ID: newID("snap_"), SourceSessionID: one.info.ID, Region: b.info.Region, Regions: []string{b.info.Region}, Status: "created",
		SizeBytes: 1 << 20, CreatedAt: milliseconds(now), UpdatedAt: milliseconds(now), LastUsedAt: milliseconds(now),
		CreationMethod: method, ParentID: one.info.SnapshotID,
	}}
	if kept := snapshotExpiry(b, life); kept > 0 {
		made.info.ExpiresAt = milliseconds(now.Add(kept))
	}
	one.info.SnapshottedAt = milliseconds(now)
	s.snapshots[made.info.ID] = made
	b.info.CurrentSnapshotID = made.info.ID
	return made, s.evict(b)
}

// snapshotExpiry is how long a new snapshot is kept; 0: for ever.
func snapshotExpiry(b *sandbox, life *int64) time.Duration {
	for _, said := range []*int64{life, b.info.SnapshotExpires} {
		if said != nil {
			return time.Duration(*said) * time.Millisecond
		}
	}
	return snapshotLife
}

// evict removes the snapshots of a sandbox that are more than it keeps; mu is held.
func (s *Server) evict(b *sandbox) error {
	if b.info.KeepLast == nil || !b.info.KeepLast.DeleteEvicted {
		return nil
	}
	own := s.snapshotsOf(b.info.Name)
	for len(own) > b.info.KeepLast.Count {
		if err := s.erase(own[0]); err != nil {
			return err
		}
		own = own[1:]
	}
	return nil
}

// snapshotsOf are those of one sandbox, or all of them, the oldest first; mu is held.
func (s *Server) snapshotsOf(name string) []*snapshot {
	var own []*snapshot
	for _, one := range s.snapshots {
		if one.info.Status == "created" && (name == "" || one.name == name) {
			own = append(own, one)
		}
	}
	slices.SortFunc(own, func(a, b *snapshot) int {
		return cmp.Or(cmp.Compare(a.info.CreatedAt, b.info.CreatedAt), cmp.Compare(a.info.ID, b.info.ID))
	})
	return own
}

// usable finds a snapshot that boxes can be made of; mu is held.
func (s *Server) usable(id string) (*snapshot, error) {
	one := s.snapshots[id]
	if one == nil || one.info.Status != "created" || one.info.ExpiresAt > 0 && one.info.ExpiresAt < milliseconds(time.Now()) {
		return nil, fail(http.StatusGone, "snapshot_not_found", fmt.Sprintf("The snapshot %s is not there any more.", id))
	}
	return one, nil
}

// erase removes a copy; its record says so; mu is held.
func (s *Server) erase(one *snapshot) error {
	if err := one.copy.Delete(); err != nil {
		return err
	}
	one.info.Status, one.info.UpdatedAt = "deleted", milliseconds(time.Now())
	delete(s.snapshots, one.info.ID)
	for _, b := range s.sandboxes {
		if b.info.CurrentSnapshotID == one.info.ID {
			b.info.CurrentSnapshotID = ""
		}
	}
	return nil
}

// dropSnapshotsOf removes the snapshots of a sandbox that is gone, but for those that others still name.
func (s *Server) dropSnapshotsOf(gone *sandbox) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.snapshotsOf(gone.info.Name) {
		needed := false
		for _, b := range s.sandboxes {
			needed = needed || b.info.CurrentSnapshotID == one.info.ID
		}
		if needed {
			continue
		}
		if err := s.erase(one); err != nil {
			return err
		}
	}
	return nil
}

// takeSnapshot copies a session, and thereby stops it.
func (s *Server) takeSnapshot(r *http.Request) (any, error) {
	var body struct {
		Expiration *int64 `json:"expiration"`
	}
	if err := read(r, &body); err != nil {
		return nil, err
	}
	one, err := s.running(r)
	if err != nil {
		return nil, err
	}
	one.sandbox.changing.Lock()
	defer one.sandbox.changing.Unlock()
	made, err := one.haltNow(context.WithoutCancel(r.Context()), true, body.Expiration, "manual")
	if err != nil {
		return nil, err
	}
	if made == nil {
		return nil, stopped()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return map[string]any{"snapshot": made.info, "session": one.info}, nil
}

// listSnapshots answers the snapshots, of one sandbox when it is named.
func (s *Server) listSnapshots(r *http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Snapshot
	for _, one := range s.snapshotsOf(r.URL.Query().Get("name")) {
		all = append(all, one.info)
	}
	slices.SortFunc(all, func(a, b Snapshot) int { return newestFirst(r, a.CreatedAt, b.CreatedAt, a.ID, b.ID) })
	items, pages, err := page(r, all)
	return map[string]any{"snapshots": items, "pagination": pages}, err
}

// snapshotTree answers a snapshot and what it was made of, back to the first.
func (s *Server) snapshotTree(r *http.Request) (any, error) {
	type node struct {
		Snapshot Snapshot   `json:"snapshot"`
		Siblings []Snapshot `json:"siblings"`
		Count    string     `json:"count"`
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	nodes := []node{}
	for id := r.URL.Query().Get("snapshotId"); s.snapshots[id] != nil; id = s.snapshots[id].info.ParentID {
		nodes = append(nodes, node{Snapshot: s.snapshots[id].info, Siblings: []Snapshot{}, Count: "1"})
	}
	return map[string]any{"snapshots": nodes, "pagination": Pagination{Count: len(nodes)}}, nil
}

// getSnapshot answers one snapshot.
func (s *Server) getSnapshot(r *http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.snapshots[r.PathValue("id")]
	if one == nil {
		return nil, notFound("The snapshot")
	}
	return map[string]any{"snapshot": one.info}, nil
}

// deleteSnapshot removes one snapshot.
func (s *Server) deleteSnapshot(r *http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.snapshots[r.PathValue("id")]
	if one == nil {
		return nil, notFound("The snapshot")
	}
	if err := s.erase(one); err != nil {
		return nil, err
	}
	return map[string]any{"snapshot": one.info}, nil
}
