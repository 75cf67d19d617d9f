package fleet

import "context"

// Kill ends a sandbox of the team and returns when nothing of it is left: its streams are cut first, then
// its box is destroyed.
func (f *Fleet) Kill(ctx context.Context, teamID, id string) error {
	if _, err := f.owned(ctx, teamID, id); err != nil {
		return err
	}
	return f.end(ctx, id, "killed", whenRunning)
}

// KillAny is Kill for the operator, whatever the team.
func (f *Fleet) KillAny(ctx context.Context, id string) error {
	return f.end(ctx, id, "killed by the operator", whenRunning)
}
