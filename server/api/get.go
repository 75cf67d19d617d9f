package api

import (
	"context"

	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/translate"
)

// GetSandbox returns one sandbox, its token included: SDKs 1.5 to 1.13 connect by this call.
func (o *operations) GetSandbox(ctx context.Context, call openapi.GetSandboxRequestObject) (openapi.GetSandboxResponseObject, error) {
	id, err := translate.SandboxID(call.SandboxID)
	if err != nil {
		return nil, err
	}
	sb, err := o.fleet.Sandbox(ctx, team(ctx), id)
	if err != nil {
		return nil, err
	}
	return openapi.GetSandbox200JSONResponse(translate.SandboxDetail(sb, o.access(sb))), nil
}
