package api

import (
	"context"

	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/translate"
)

// UpdateSandboxNetwork replaces what a running sandbox may reach.
func (o *operations) UpdateSandboxNetwork(ctx context.Context, call openapi.UpdateSandboxNetworkRequestObject) (openapi.UpdateSandboxNetworkResponseObject, error) {
	id, err := translate.SandboxID(call.SandboxID)
	if err != nil {
		return nil, err
	}
	network, rules, err := translate.NetworkUpdate(*call.Body)
	if err != nil {
		return nil, err
	}
	if err := o.fleet.SetNetwork(ctx, team(ctx), id, network, rules); err != nil {
		return nil, err
	}
	return openapi.UpdateSandboxNetwork204Response{}, nil
}
