package api

import (
	"context"

	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/translate"
)

// CreateSnapshot copies a running sandbox.
func (o *operations) CreateSnapshot(ctx context.Context, call openapi.CreateSnapshotRequestObject) (openapi.CreateSnapshotResponseObject, error) {
	id, err := translate.SandboxID(call.SandboxID)
	if err != nil {
		return nil, err
	}
	name, err := translate.SnapshotName(call.Body.Name)
	if err != nil {
		return nil, err
	}
	snapshot, err := o.fleet.Snapshot(ctx, team(ctx), id, name, call.Body.Memory)
	if err != nil {
		return nil, err
	}
	return openapi.CreateSnapshot201JSONResponse(translate.Snapshot(snapshot)), nil
}
