package api

import (
	"context"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/translate"
	"github.com/isthmus/isthmus/translate/placement"
)

// resumedLife is the timeout of a resume that names none, in seconds.
const resumedLife int32 = 15

// ResumeSandbox resumes a paused sandbox. Clients 2.0 to 2.5 ask for it when they connect to a sandbox whose timeout they
// could not set. A running sandbox is a conflict.
func (o *operations) ResumeSandbox(ctx context.Context, call openapi.ResumeSandboxRequestObject) (openapi.ResumeSandboxResponseObject, error) {
	id, err := translate.SandboxID(call.SandboxID)
	if err != nil {
		return nil, err
	}
	seconds := resumedLife
	if call.Body.Timeout != nil {
		seconds = *call.Body.Timeout
	}
	timeout, err := translate.Lifetime(seconds, o.limits())
	if err != nil {
		return nil, err
	}
	sb, err := o.fleet.Sandbox(ctx, team(ctx), id)
	if err != nil {
		return nil, err
	}
	if sb.State.Shown() != store.StatePaused {
		return nil, adapters.Errorf(adapters.KindPrecondition, "sandbox %s is running already: connect to it", id)
	}
	sandbox, _, err := o.connect(ctx, id, placement.Wake{Timeout: timeout, Memory: call.Body.Memory, AutoPause: call.Body.AutoPause})
	if err != nil {
		return nil, err
	}
	return openapi.ResumeSandbox201JSONResponse(sandbox), nil
}
