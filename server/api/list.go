package api

import (
	"context"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/translate"
)

// maxUnpaged is the longest list without pages.
const maxUnpaged = 5000

// ListSandboxes returns the running sandboxes in one piece.
func (o *operations) ListSandboxes(ctx context.Context, call openapi.ListSandboxesRequestObject) (openapi.ListSandboxesResponseObject, error) {
	query, err := translate.ListV1(team(ctx), call.Params)
	if err != nil {
		return nil, err
	}
	page, err := o.fleet.List(ctx, query)
	if err != nil {
		return nil, err
	}
	if len(page.Sandboxes) > maxUnpaged {
		return nil, adapters.Errorf(adapters.KindInvalid, "more than %d sandboxes match: page through GET /v2/sandboxes", maxUnpaged)
	}
	return openapi.ListSandboxes200JSONResponse(translate.ListedSandboxes(page.Sandboxes)), nil
}

// ListSandboxesV2 returns one page of running and paused sandboxes.
func (o *operations) ListSandboxesV2(ctx context.Context, call openapi.ListSandboxesV2RequestObject) (openapi.ListSandboxesV2ResponseObject, error) {
	query, err := translate.ListV2(team(ctx), call.Params)
	if err != nil {
		return nil, err
	}
	if call.Params.Template != nil {
		if query.Template, err = o.templateID(ctx, *call.Params.Template); err != nil {
			return nil, err
		}
	}
	page, err := o.fleet.List(ctx, query)
	if err != nil {
		return nil, err
	}
	response := openapi.ListSandboxesV2200JSONResponse{Body: translate.ListedSandboxes(page.Sandboxes)}
	if page.Next != nil {
		token := translate.Cursor(*page.Next, query.Ascending)
		response.Headers.XNextToken = &token
	}
	if translate.CountsRunning(query) {
		response.Headers.XTotalRunning = &page.Running
	}
	return response, nil
}

// templateID returns the id that a filter means. A template that is not there any more may still have
// sandboxes under its id, and an unknown one has none: both are simply looked for.
func (o *operations) templateID(ctx context.Context, given string) (string, error) {
	name, err := translate.TemplateFilter(given)
	if err != nil {
		return "", err
	}
	template, err := o.fleet.Template(ctx, name)
	switch {
	case err == nil:
		return template.ID, nil
	case adapters.KindOf(err) == adapters.KindNotFound:
		return name, nil
	}
	return "", err
}
