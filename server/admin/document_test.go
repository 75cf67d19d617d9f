package admin

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/server/fleet"
	"github.com/isthmus/isthmus/translate"
	"github.com/isthmus/isthmus/translate/placement"
)

// nowhere is a placement of no pool.
type nowhere struct{}

func (nowhere) Pools() []fleet.PoolState { return nil }
func (nowhere) Decision(context.Context, string) (placement.Decision, error) {
	return placement.Decision{}, nil
}
func (nowhere) Plan(context.Context, placement.Request, translate.Caller) (placement.Decision, error) {
	return placement.Decision{}, nil
}
func (nowhere) LoadAgain(context.Context) ([]string, error) { return []string{"listen"}, nil }

func TestDocumentHasEveryOperation(t *testing.T) {
	var document struct {
		Paths map[string]map[string]any
	}
	require.NoError(t, yaml.Unmarshal([]byte(openapi.Administration()), &document))
	var stated, served []string
	for path, operations := range document.Paths {
		for method := range operations {
			if method != "parameters" {
				stated = append(stated, strings.ToUpper(method)+" "+path)
			}
		}
	}
	for _, one := range New(Config{Placement: nowhere{}}).routes() {
		served = append(served, one.pattern)
	}
	require.ElementsMatch(t, append(served, "GET /isthmus/env"), stated)
}

// TestDocumentHasEveryFieldOfADrift keeps the text of a mark and the mark itself the same.
func TestDocumentHasEveryFieldOfADrift(t *testing.T) {
	var document struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(openapi.Administration()), &document))
	text, err := json.Marshal(adapters.Drift{Understood: time.Now()})
	require.NoError(t, err)
	var sent map[string]any
	require.NoError(t, json.Unmarshal(text, &sent))
	stated := document.Components.Schemas["Drift"].Properties
	require.ElementsMatch(t, slices.Collect(maps.Keys(sent)), slices.Collect(maps.Keys(stated)))
}
