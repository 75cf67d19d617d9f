package adapters

import "context"

// Level says how much of a box outlives a pause or a snapshot.
type Level string

// The levels, from the least. A box that was kept as a file system starts anew: its programs do not go on.
const (
	LevelFilesystem Level = "filesystem"
	LevelMemory     Level = "memory"
)

// Pauser is the power to stop a box so that it uses no processor and no running time, and to bring it back. What
// it keeps is the value of FeaturePause.
type Pauser interface {
	// Pause stops the box and keeps what the level says. It returns when the box is known to be stopped; Get and
	// List then show it with Paused. A box that is paused already is success; KindUnsupported for a level above
	// what the place has, before anything was changed. After KindUnknownOutcome the caller looks, and calls again.
	// A pause is no end of the box: Watcher does not tell of it. While it is paused Reach is KindPrecondition, its
	// own deadline does not end it, and Destroy removes it as any other.
	Pause(ctx context.Context, boxID string, level Level) error

	// Resume brings the paused box spec.BoxID back and returns when envd answers inside. The spec is that of the
	// box, with a new deadline: where the level was filesystem, envd is started and configured again. A box that
	// runs already is success. KindNotFound when nothing of the box is there any more. It is reached by a new Reach.
	Resume(ctx context.Context, spec Spec) (Box, error)
}
