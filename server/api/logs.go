package api

import (
	"context"

	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/translate"
)

// GetSandboxLogs returns a sandbox's log as lines, which is what the CLI reads.
func (o *operations) GetSandboxLogs(ctx context.Context, call openapi.GetSandboxLogsRequestObject) (openapi.GetSandboxLogsResponseObject, error) {
	entries, err := o.logs(ctx, call.SandboxID, translate.LogQueryV1(call.Params))
	if err != nil {
		return nil, err
	}
	logs, err := translate.Logs(entries)
	if err != nil {
		return nil, err
	}
	return openapi.GetSandboxLogs200JSONResponse(logs), nil
}

// GetSandboxLogsV2 returns a sandbox's log as entries.
func (o *operations) GetSandboxLogsV2(ctx context.Context, call openapi.GetSandboxLogsV2RequestObject) (openapi.GetSandboxLogsV2ResponseObject, error) {
	entries, err := o.logs(ctx, call.SandboxID, translate.LogQueryV2(call.Params))
	if err != nil {
		return nil, err
	}
	return openapi.GetSandboxLogsV2200JSONResponse{Logs: translate.LogEntries(entries)}, nil
}

// logs reads entries. With a limit of 0 the sandbox must still exist.
func (o *operations) logs(ctx context.Context, given string, query store.LogQuery) ([]store.LogEntry, error) {
	id, err := translate.SandboxID(given)
	if err != nil {
		return nil, err
	}
	limit := query.Limit
	query.Limit = max(1, limit)
	entries, err := o.fleet.Logs(ctx, team(ctx), id, query)
	return entries[:min(limit, len(entries))], err
}
