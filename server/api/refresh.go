package api

import (
	"context"
	"time"

	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/translate"
)

// leastRefresh is what a refresh extends a life to, at the least and by default.
const leastRefresh = 15 * time.Second

// RefreshSandbox extends a sandbox's life; the first SDKs call it every few seconds.
func (o *operations) RefreshSandbox(ctx context.Context, call openapi.RefreshSandboxRequestObject) (openapi.RefreshSandboxResponseObject, error) {
	id, err := translate.SandboxID(call.SandboxID)
	if err != nil {
		return nil, err
	}
	duration := leastRefresh
	if call.Body.Duration != nil {
		duration = max(duration, time.Duration(*call.Body.Duration)*time.Second)
	}
	if err := o.fleet.Refresh(ctx, team(ctx), id, duration); err != nil {
		return nil, err
	}
	return openapi.RefreshSandbox204Response{}, nil
}
