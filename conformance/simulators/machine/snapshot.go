//go:build linux

package machine

import (
	"context"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// Snapshot is the file system of a box at one time. It outlives the box, and ends with the cloud.
type Snapshot struct {
	cloud    *Cloud
	kept     adapters.Snapshot
	template adapters.Template
	env      map[string]string
	// DiskMB is the disk of the box that was copied: those that are made of the copy have no less.
	DiskMB int
	// SizeBytes is what the copy takes.
	SizeBytes int64
	CreatedAt time.Time
}

// Snapshot copies the file system of the box, running or stopped. A box that runs stands still meanwhile and then
// goes on.
func (b *Box) Snapshot(ctx context.Context) (*Snapshot, error) {
	spec := b.made()
	kept, err := b.cloud.local.Snapshot(ctx, spec, newID())
	if err != nil {
		return nil, err
	}
	s := &Snapshot{
		cloud: b.cloud, kept: kept, template: spec.Template, env: spec.Envd.EnvVars,
		DiskMB: spec.Resources.DiskMB, SizeBytes: kept.SizeBytes, CreatedAt: kept.CreatedAt,
	}
	s.template.Snapshot = kept.Ref
	return s, nil
}

// Delete removes the copy. Boxes that were made of it are left alone. Twice is fine.
func (s *Snapshot) Delete() error { return s.cloud.local.Forget(s.cloud.live, s.kept) }
