package api

import (
	"context"

	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/server/auth"
)

// ListTeams returns the caller's team with the key that was presented: the CLI stores it and would be left
// without one otherwise. No key is made.
func (o *operations) ListTeams(ctx context.Context, _ openapi.ListTeamsRequestObject) (openapi.ListTeamsResponseObject, error) {
	caller := auth.From(ctx)
	return openapi.ListTeams200JSONResponse{{
		TeamID:    caller.Team.ID,
		Name:      caller.Team.Name,
		APIKey:    caller.Presented(),
		IsDefault: caller.Team.Default,
	}}, nil
}
