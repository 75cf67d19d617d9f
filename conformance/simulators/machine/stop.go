//go:build linux

package machine

import (
	"context"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// Stop ends all processes of the box and keeps its file system. A stopped box is success.
func (b *Box) Stop(ctx context.Context) error {
	b.intend(CauseStopped)
	if err := b.cloud.local.Pause(ctx, b.id, adapters.LevelFilesystem); err != nil {
		return err
	}
	b.halted()
	return nil
}

// Restart boots a stopped box again, with nothing but its file system. A box that runs is success.
func (b *Box) Restart(ctx context.Context) error {
	spec := b.made()
	spec.Envd.Deadline = time.Now().Add(lease)
	if _, err := b.cloud.local.Resume(ctx, spec); err != nil {
		return err
	}
	if err := b.follow(); err != nil {
		return err
	}
	return b.trust(ctx)
}

// Stopped reports whether the box is stopped and can be started again.
func (b *Box) Stopped(ctx context.Context) (bool, error) {
	box, err := b.cloud.local.Get(ctx, b.id)
	return box.Paused, err
}
