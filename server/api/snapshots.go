package api

import (
	"context"

	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/translate"
)

// ListSnapshots returns one page of the team's snapshots, the newest first.
func (o *operations) ListSnapshots(ctx context.Context, call openapi.ListSnapshotsRequestObject) (openapi.ListSnapshotsResponseObject, error) {
	query, err := translate.ListSnapshots(team(ctx), call.Params)
	if err != nil {
		return nil, err
	}
	page, err := o.fleet.Snapshots(ctx, query)
	if err != nil {
		return nil, err
	}
	response := openapi.ListSnapshots200JSONResponse{Body: translate.Snapshots(page.Snapshots)}
	if page.Next != nil {
		token := translate.Cursor(*page.Next, false)
		response.Headers.XNextToken = &token
	}
	return response, nil
}
