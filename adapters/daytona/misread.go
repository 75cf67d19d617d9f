package daytona

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/isthmus/isthmus/adapters"
)

// vendor is how messages name the provider.
const vendor adapters.Vendor = "Daytona"

// looked is the last look at something that is waited for.
type looked struct {
	state string
	err   error
}

// note keeps a look, unless it was broken off.
func (l *looked) note(ctx context.Context, state string, err error) {
	if err == nil || ctx.Err() == nil {
		l.state, l.err = state, err
	}
}

// givenUp is the error of a wait for a state that ended with its context: that of the context, unless what Daytona said
// last is not understood. What was begun goes on.
func (l *looked) givenUp(stopped error, wanted string, known []string) error {
	switch odd := adapters.MisreadOf(l.err); {
	case odd != nil:
		return vendor.Misread(true, errors.Join(stopped, l.err), odd.Reason)
	case l.err == nil && l.state != "" && !slices.Contains(known, l.state):
		return adapters.Misunderstood(adapters.KindUnknownOutcome, stopped,
			fmt.Sprintf("Daytona says %s where %s is waited for, and that is not known here", adapters.Strange(l.state), wanted))
	}
	return stopped
}

// states are those that are known. Any other one is taken for one on the way, and for life.
func states() []string {
	return []string{stateStarted, stateStopped, statePaused, stateArchived, stateDestroying, stateDestroyed, stateError, stateBuildFailed,
		"creating", "restoring", "starting", "stopping", "pending_build", "building_snapshot", "unknown", "pulling_snapshot", "archiving",
		"resizing", "snapshotting", "forking", "pausing", "resuming"}
}

// sound looks that a sandbox has what tells it from others. One that is described without is not understood: that it
// carries no label of ours must not pass for proof that there is none of ours.
func (s sandbox) sound() error {
	switch {
	case s.ID == "":
		return vendor.Unread(adapters.KindUnavailable, nil, "it describes a sandbox without an id")
	case s.Labels == nil:
		return vendor.Unread(adapters.KindUnavailable, nil, "it describes a sandbox without labels")
	case s.State == "":
		return vendor.Unread(adapters.KindUnavailable, nil, "it describes a sandbox without a state")
	}
	return nil
}

// snapshotStates are those that are known.
func snapshotStates() []string {
	return []string{snapshotActive, snapshotInactive, snapshotError, snapshotFailed, "pending", "building", "pulling", "removing"}
}
