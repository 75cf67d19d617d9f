package fleet

import (
	"context"

	"github.com/isthmus/isthmus/store"
)

// Sandbox returns a running or paused sandbox of the team.
func (f *Fleet) Sandbox(ctx context.Context, teamID, id string) (store.Sandbox, error) {
	sb, err := f.owned(ctx, teamID, id)
	if err != nil {
		return store.Sandbox{}, err
	}
	if sb.State == store.StateKilling {
		return store.Sandbox{}, notFound(id)
	}
	return sb, nil
}

// List returns one page of the team's sandboxes.
func (f *Fleet) List(ctx context.Context, q store.SandboxQuery) (store.SandboxPage, error) {
	page, err := f.store.Sandboxes.List(ctx, q)
	return page, storeError("", err)
}

// All returns every sandbox of every team, in whatever state, for the operator.
func (f *Fleet) All(ctx context.Context) ([]store.Sandbox, error) {
	all, err := f.store.Sandboxes.All(ctx)
	return all, storeError("", err)
}

// owned returns a sandbox of the team that a client may know of: not one in the making.
func (f *Fleet) owned(ctx context.Context, teamID, id string) (store.Sandbox, error) {
	sb, err := f.store.Sandboxes.Get(ctx, id)
	if err != nil {
		return store.Sandbox{}, storeError(id, err)
	}
	if sb.TeamID != teamID || sb.State == store.StateCreating {
		return store.Sandbox{}, notFound(id)
	}
	return sb, nil
}
