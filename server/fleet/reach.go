package fleet

import (
	"context"

	"github.com/isthmus/isthmus/store"
)

// Route returns the way to a running sandbox. KindNotFound when there is none, and for one that is paused: the error is
// then an Asleep where traffic may wake it. KindUnavailable when its pool cannot be reached now, which does not mean that
// the sandbox is gone.
func (f *Fleet) Route(ctx context.Context, sandboxID string) (*Route, error) {
	if one := f.homes.get(sandboxID); one != nil {
		return one.route, nil
	}
	sb, err := f.store.Sandboxes.Get(ctx, sandboxID)
	if err != nil {
		return nil, storeError(sandboxID, err)
	}
	switch sb.State.Shown() {
	case store.StateRunning:
	case store.StatePaused:
		return nil, f.asleepRoute(sb)
	default:
		return nil, notFound(sandboxID)
	}
	one, err := f.open(ctx, sb)
	if err != nil {
		return nil, f.lost(sandboxID, err)
	}
	return one.route, nil
}

// Match returns the running secure sandbox that check accepts, given its id and envd token. check is called
// for one sandbox after the other, must be quick and must not call the fleet.
func (f *Fleet) Match(ctx context.Context, check func(sandboxID, envdToken string) bool) (string, bool) {
	for _, one := range f.homes.list() {
		if ctx.Err() != nil {
			return "", false
		}
		if one.secure && check(one.id, one.route.EnvdToken) {
			return one.id, true
		}
	}
	return "", false
}
