package api

import (
	"context"
	"reflect"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/server/auth"
	"github.com/isthmus/isthmus/translate"
	"github.com/isthmus/isthmus/translate/placement"
)

// CreateSandbox makes a sandbox as SDKs before 2.51 ask for it.
func (o *operations) CreateSandbox(ctx context.Context, call openapi.CreateSandboxRequestObject) (openapi.CreateSandboxResponseObject, error) {
	request, err := translate.Create(team(ctx), *call.Body, call.Params.PackageVersion, o.limits())
	if err == nil {
		err = o.require(ctx, &request, call.Params.XIsthmusRequire)
	}
	if err != nil {
		return nil, err
	}
	sb, err := o.fleet.Create(ctx, request)
	if err != nil {
		return nil, err
	}
	return openapi.CreateSandbox201JSONResponse(translate.Sandbox(sb, o.access(sb))), nil
}

// CreateSandboxV2 makes a sandbox that is always secured.
func (o *operations) CreateSandboxV2(ctx context.Context, call openapi.CreateSandboxV2RequestObject) (openapi.CreateSandboxV2ResponseObject, error) {
	var idempotencyKey string
	if call.Params.IdempotencyKey != nil {
		idempotencyKey = *call.Params.IdempotencyKey
	}
	request, err := translate.CreateV2(team(ctx), *call.Body, idempotencyKey, o.limits())
	if err == nil {
		err = o.require(ctx, &request, call.Params.XIsthmusRequire)
	}
	if err != nil {
		return nil, err
	}
	sb, err := o.fleet.Create(ctx, request)
	if err != nil {
		return nil, err
	}
	return openapi.CreateSandboxV2201JSONResponse(translate.Sandbox(sb, o.access(sb))), nil
}

// require adds what the caller, and the operator for the caller, require of the place.
func (o *operations) require(ctx context.Context, request *placement.Request, header *string) error {
	identity := auth.From(ctx)
	caller := translate.Caller{KeyID: identity.Key.ID, KeyName: identity.Key.Name, Require: header}
	asked := *request
	if err := translate.Require(request, caller, o.rules()); err != nil {
		return err
	}
	required := request.Require
	request.Allowed = func(ctx context.Context) error { return o.stillAllowed(ctx, identity, asked, caller, required) }
	return nil
}

// stillAllowed looks, between two attempts at a create, whether the key is still valid and the same is still required of
// the place.
func (o *operations) stillAllowed(ctx context.Context, caller auth.Identity, asked placement.Request, says translate.Caller, required placement.Requirements) error {
	if err := o.auth.Still(ctx, caller); err != nil {
		return err
	}
	if err := translate.Require(&asked, says, o.rules()); err != nil {
		return err
	}
	if !reflect.DeepEqual(asked.Require, required) {
		return adapters.Errorf(adapters.KindUnavailable, "what is required of the place was changed while the sandbox was being made: send the create again")
	}
	return nil
}
