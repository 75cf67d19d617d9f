package api

import (
	"context"
	"time"

	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/translate"
)

// SetSandboxTimeout moves a sandbox's end, in both directions.
func (o *operations) SetSandboxTimeout(ctx context.Context, call openapi.SetSandboxTimeoutRequestObject) (openapi.SetSandboxTimeoutResponseObject, error) {
	id, err := translate.SandboxID(call.SandboxID)
	if err != nil {
		return nil, err
	}
	if err := o.fleet.SetTimeout(ctx, team(ctx), id, time.Duration(call.Body.Timeout)*time.Second); err != nil {
		return nil, err
	}
	return openapi.SetSandboxTimeout204Response{}, nil
}
