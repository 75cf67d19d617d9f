package api

import (
	"context"

	"github.com/isthmus/isthmus/openapi"
)

// GetHealth says that the control plane answers, in the words that probes of E2B servers look for.
func (o *operations) GetHealth(context.Context, openapi.GetHealthRequestObject) (openapi.GetHealthResponseObject, error) {
	return openapi.GetHealth200TextResponse("Health check successful"), nil
}
