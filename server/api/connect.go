package api

import (
	"context"

	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/translate"
	"github.com/isthmus/isthmus/translate/placement"
)

// ConnectSandbox hands out a sandbox's tokens and extends its life, and resumes one that is paused. The field memory is
// about paused sandboxes only: a running one has nothing to restore, so it is honoured by doing nothing.
func (o *operations) ConnectSandbox(ctx context.Context, call openapi.ConnectSandboxRequestObject) (openapi.ConnectSandboxResponseObject, error) {
	timeout, err := translate.Lifetime(call.Body.Timeout, o.limits())
	if err != nil {
		return nil, err
	}
	sandbox, resumed, err := o.connect(ctx, call.SandboxID, placement.Wake{Timeout: timeout, Memory: call.Body.Memory})
	switch {
	case err != nil:
		return nil, err
	case resumed:
		return openapi.ConnectSandbox201JSONResponse(sandbox), nil
	}
	return openapi.ConnectSandbox200JSONResponse(sandbox), nil
}

// ConnectSandboxV2 is the same with a default timeout.
func (o *operations) ConnectSandboxV2(ctx context.Context, call openapi.ConnectSandboxV2RequestObject) (openapi.ConnectSandboxV2ResponseObject, error) {
	timeout, err := translate.ConnectLifetime(call.Body.Timeout, o.limits())
	if err != nil {
		return nil, err
	}
	sandbox, resumed, err := o.connect(ctx, call.SandboxID, placement.Wake{Timeout: timeout, Memory: call.Body.Memory})
	switch {
	case err != nil:
		return nil, err
	case resumed:
		return openapi.ConnectSandboxV2201JSONResponse(sandbox), nil
	}
	return openapi.ConnectSandboxV2200JSONResponse(sandbox), nil
}

func (o *operations) connect(ctx context.Context, given string, wake placement.Wake) (openapi.Sandbox, bool, error) {
	id, err := translate.SandboxID(given)
	if err != nil {
		return openapi.Sandbox{}, false, err
	}
	sb, resumed, err := o.fleet.Connect(ctx, team(ctx), id, wake)
	if err != nil {
		return openapi.Sandbox{}, false, err
	}
	return translate.Sandbox(sb, o.access(sb)), resumed, nil
}
