package adapters

import (
	"context"
	"time"
)

// Snapshotter is the power to keep a copy of a box from which other boxes can be made. What a copy holds is the
// value of FeatureSnapshot.
type Snapshotter interface {
	// Snapshot copies the box under a name of the caller, which is unique and 21 characters of [a-z0-9], and
	// labels it with the deployment of the box. The box runs on, under the same id, when it returns; envd answers
	// again and the box's files are unchanged, but where the level is filesystem the place may have had to start
	// it anew. Twice with one name is one copy.
	Snapshot(ctx context.Context, spec Spec, name string) (Snapshot, error)

	// Snapshots returns every copy that carries the deployment's label, ready or not.
	Snapshots(ctx context.Context, deployment string) ([]Snapshot, error)

	// Forget removes a copy. One that is not there is success. KindPrecondition while boxes need it.
	Forget(ctx context.Context, snapshot Snapshot) error
}

// Snapshot is a copy of a box at its place. A box is made of it when Spec.Template.Snapshot is its Ref.
type Snapshot struct {
	// Name is the caller's, Ref the place's own word for it.
	Name string
	Ref  string
	// Deployment is the label of the Isthmus that made it.
	Deployment string
	Level      Level
	CreatedAt  time.Time
	// Ready says that the copy is whole, so that boxes can be made of it. What Snapshot returns is; Snapshots lists
	// those too that are being made, and those that failed. One that is ready has a Ref.
	Ready bool
	// SizeBytes is what the place says that it takes; 0: not known.
	SizeBytes int64
}
