package api

import (
	"context"

	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/translate"
)

// GetSandboxMetrics returns one sandbox's samples.
func (o *operations) GetSandboxMetrics(ctx context.Context, call openapi.GetSandboxMetricsRequestObject) (openapi.GetSandboxMetricsResponseObject, error) {
	id, err := translate.SandboxID(call.SandboxID)
	if err != nil {
		return nil, err
	}
	from, to, err := translate.MetricsWindow(call.Params)
	if err != nil {
		return nil, err
	}
	samples, err := o.fleet.Metrics(ctx, team(ctx), id, from, to)
	if err != nil {
		return nil, err
	}
	return openapi.GetSandboxMetrics200JSONResponse(translate.Metrics(samples)), nil
}

// GetSandboxesMetrics returns the newest sample of each of several sandboxes.
func (o *operations) GetSandboxesMetrics(ctx context.Context, call openapi.GetSandboxesMetricsRequestObject) (openapi.GetSandboxesMetricsResponseObject, error) {
	ids, err := translate.SandboxIDs(call.Params.SandboxIds)
	if err != nil {
		return nil, err
	}
	samples, err := o.fleet.LatestMetrics(ctx, team(ctx), ids)
	if err != nil {
		return nil, err
	}
	shown := make(map[string]openapi.SandboxMetric, len(samples))
	for id, sample := range samples {
		shown[id] = translate.Metric(sample)
	}
	return openapi.GetSandboxesMetrics200JSONResponse{Sandboxes: shown}, nil
}
