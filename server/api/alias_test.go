package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTemplateAlias(t *testing.T) {
	plane := newPlane(t)
	for name, status := range map[string]int{"base": http.StatusOK, "no-such-template": http.StatusNotFound} {
		answer := plane.call("GET", "/templates/aliases/"+name, "", nil)
		require.Equal(t, status, answer.Code, answer.Body.String())
		if status == http.StatusOK {
			require.Contains(t, answer.Body.String(), `"templateID"`)
		}
	}
}
