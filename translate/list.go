package translate

import (
	"slices"

	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/store"
)

// pageSize is the size of a page when the client names none.
const pageSize = 100

// ListV1 turns the query of the unpaged list into ours: running sandboxes only.
func ListV1(teamID string, params openapi.ListSandboxesParams) (store.SandboxQuery, error) {
	query := store.SandboxQuery{TeamID: teamID, States: []store.State{store.StateRunning}}
	var err error
	query.Metadata, err = MetadataFilter(given(params.Metadata))
	return query, err
}

// ListV2 turns the query of the paged list into ours. The template filter is left to the caller, who can
// look names up.
func ListV2(teamID string, params openapi.ListSandboxesV2Params) (store.SandboxQuery, error) {
	query := store.SandboxQuery{
		TeamID:       teamID,
		States:       []store.State{store.StateRunning, store.StatePaused},
		StartedAfter: given(params.StartedAfter),
		Ascending:    given(params.Order) == openapi.OrderDirectionAsc,
		Limit:        pageSize,
	}
	if params.Limit != nil {
		query.Limit = int(*params.Limit)
	}
	if len(params.State) > 0 {
		query.States = query.States[:0]
		for _, state := range params.State {
			query.States = append(query.States, store.State(state))
		}
	}
	var err error
	if query.Metadata, err = MetadataFilter(given(params.Metadata)); err != nil {
		return query, err
	}
	if token := given(params.NextToken); token != "" {
		query.After, err = parseCursor(token, query.Ascending)
	}
	return query, err
}

// CountsRunning tells whether running sandboxes are among those asked for.
func CountsRunning(query store.SandboxQuery) bool {
	return slices.Contains(query.States, store.StateRunning)
}

// given returns what a pointer points to, or the zero value.
func given[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
