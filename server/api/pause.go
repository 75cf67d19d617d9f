package api

import (
	"context"

	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/translate"
)

// PauseSandbox stops a sandbox and keeps it. SDKs take a 409, one that is paused already, for false.
func (o *operations) PauseSandbox(ctx context.Context, call openapi.PauseSandboxRequestObject) (openapi.PauseSandboxResponseObject, error) {
	id, err := translate.SandboxID(call.SandboxID)
	if err != nil {
		return nil, err
	}
	if err := o.fleet.Pause(ctx, team(ctx), id, translate.Pause(*call.Body, call.Params.PackageVersion)); err != nil {
		return nil, err
	}
	return openapi.PauseSandbox204Response{}, nil
}
