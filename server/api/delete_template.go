package api

import (
	"context"

	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/translate"
)

// DeleteTemplate removes a snapshot: SDKs take a 404 for false. Templates are their operator's.
func (o *operations) DeleteTemplate(ctx context.Context, call openapi.DeleteTemplateRequestObject) (openapi.DeleteTemplateResponseObject, error) {
	reference, err := translate.TemplateReference(call.TemplateID)
	if err != nil {
		return nil, err
	}
	if err := o.fleet.RemoveSnapshot(ctx, team(ctx), reference); err != nil {
		return nil, err
	}
	return openapi.DeleteTemplate204Response{}, nil
}
