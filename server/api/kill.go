package api

import (
	"context"

	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/translate"
)

// KillSandbox ends a sandbox and answers when nothing of it is left.
func (o *operations) KillSandbox(ctx context.Context, call openapi.KillSandboxRequestObject) (openapi.KillSandboxResponseObject, error) {
	id, err := translate.SandboxID(call.SandboxID)
	if err != nil {
		return nil, err
	}
	if err := o.fleet.Kill(ctx, team(ctx), id); err != nil {
		return nil, err
	}
	return openapi.KillSandbox204Response{}, nil
}
