package api_test

import (
	"testing"

	"github.com/isthmus/isthmus/store"
	"github.com/stretchr/testify/require"
)

// TestUnservedLooksFirst calls operations that are not served: who asks, and for what, is looked at before 501.
func TestUnservedLooksFirst(t *testing.T) {
	const fork = "/sandboxes/i1/fork"
	for _, row := range []struct {
		name, method, path, body, key string
		status                        int
		says                          string
	}{
		{"a running sandbox", "POST", fork, `{}`, keyOne, 501, "forkSandbox is not served"},
		{"without a body, old form of the id", "POST", "/sandboxes/i1-6532622b/fork", "", keyOne, 501, "forkSandbox is not served"},
		{"a missing sandbox", "POST", "/sandboxes/i9/fork", `{}`, keyOne, 404, "no sandbox i9"},
		{"a foreign sandbox", "POST", fork, `{}`, keyTwo, 404, "no sandbox i1"},
		{"a paused sandbox", "POST", "/sandboxes/i2/fork", `{}`, keyOne, 409, "sandbox i2 does not run"},
		{"a malformed id", "POST", "/sandboxes/I1/fork", `{}`, keyOne, 400, "a sandbox id is"},
		{"without a key", "POST", "/sandboxes/i9/fork", `{}`, "", 401, "No API key"},
		{"a template", "GET", "/templates/base", "", keyOne, 501, "getTemplate is not served"},
		{"a template with its tag", "GET", "/templates/base%3Adefault/tags", "", keyOne, 501, "listTemplateTags is not served"},
		{"a snapshot", "GET", "/templates/mine", "", keyOne, 501, "getTemplate is not served"},
		{"a foreign snapshot", "GET", "/templates/mine", "", keyTwo, 404, "no template mine"},
		{"a missing template", "GET", "/templates/nowhere/tags", "", keyOne, 404, "no template nowhere"},
		{"publishing a missing template", "PATCH", "/v2/templates/nowhere", `{"public":true}`, keyOne, 404, "no template nowhere"},
		{"tags of a template", "POST", "/templates/tags", `{"target":"base","tags":["a"]}`, keyOne, 501, "assignTemplateTags is not served"},
		{"tags of a missing template", "POST", "/templates/tags", `{"target":"nowhere:x","tags":["a"]}`, keyOne, 404, "no template nowhere:x"},
		{"tags off a missing template", "DELETE", "/templates/tags", `{"name":"nowhere","tags":["a"]}`, keyOne, 404, "no template nowhere"},
		{"tags of nothing", "POST", "/templates/tags", `{"tags":["a"]}`, keyOne, 400, "target is required"},
		{"a new template", "POST", "/v3/templates", `{"name":"new"}`, keyOne, 501, "createTemplateV3 is not served"},
		{"events outlive their sandbox", "GET", "/events/sandboxes/i9", "", keyOne, 501, "getSandboxEvents is not served"},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newPlane(t)
			p.fleet.add(teamOne, "i1", 0, nil)
			p.fleet.add(teamOne, "i2", 0, nil)
			asleep := p.fleet.sandboxes["i2"]
			asleep.State = store.StatePaused
			p.fleet.sandboxes["i2"] = asleep
			answer := p.call(row.method, row.path, row.body, map[string]string{"X-API-Key": row.key})
			failure := answer.failure(t)
			require.Equal(t, row.status, answer.Code, failure.Message)
			require.Contains(t, failure.Message, row.says)
			require.Empty(t, p.fleet.changes)
		})
	}
}
