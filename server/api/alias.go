package api

import (
	"context"

	"github.com/isthmus/isthmus/openapi"
)

// GetTemplateAlias tells SDKs whether a template exists. Every team may use every template.
func (o *operations) GetTemplateAlias(ctx context.Context, call openapi.GetTemplateAliasRequestObject) (openapi.GetTemplateAliasResponseObject, error) {
	template, err := o.fleet.Template(ctx, call.Alias)
	if err != nil {
		return nil, err
	}
	return openapi.GetTemplateAlias200JSONResponse{TemplateID: template.ID, Public: true}, nil
}
