package translate

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/openapi"
)

var update = flag.Bool("update", false, "write docs/compatibility.md instead of comparing it")

const compatibilityPage = "../docs/compatibility.md"

// The page of what is served and what is refused is made from the document and the table that decide it.
func TestCompatibilityPage(t *testing.T) {
	want := compatibility(t)
	if *update {
		require.NoError(t, os.WriteFile(compatibilityPage, []byte(want), 0o644))
	}
	have, err := os.ReadFile(compatibilityPage)
	require.NoError(t, err)
	require.Equal(t, want, string(have), "run: go test ./translate -run TestCompatibilityPage -update")
}

func compatibility(t *testing.T) string {
	var b strings.Builder
	b.WriteString("# What is served\n\nMade by a test from `openapi/openapi.yaml` and `translate/fields.go`. Commands, files, terminals and watches are\n" +
		"envd's and served whole; this page is about the control plane.\n\n## Fields of a create\n\n" +
		"A field that is refused is so with any value but its default. The answer names it and says what to do instead.\n" +
		"A field that nobody knows is ignored, as E2B does. A field that is honoured in some pools only is a requirement: the\n" +
		"create goes to such a pool, and where there is none it is refused with 400 and the field's name.\n\n| field | treatment | answer | note |\n|---|---|---|---|\n")
	for _, f := range Fields() {
		answer := ""
		if f.Treatment == Refused {
			answer = fmt.Sprint(max(f.Status, http.StatusBadRequest))
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, f.Treatment, answer, f.Instead)
	}
	served, others := operations(t)
	b.WriteString("\n## Operations\n\n")
	for _, line := range served {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	b.WriteString("\n## Operations that name themselves and answer 501\n\nDocker-push builds of old command line tools answer 410.\n\n")
	for _, line := range others {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	return b.String()
}

// operations lists the document's operations as method and path, served and not.
func operations(t *testing.T) (served, others []string) {
	var doc struct {
		Paths map[string]map[string]any
	}
	require.NoError(t, yaml.Unmarshal([]byte(openapi.Document()), &doc))
	for path, item := range doc.Paths {
		for method, content := range item {
			operation, ok := content.(map[string]any)
			if !ok || operation["operationId"] == nil {
				continue
			}
			line := fmt.Sprintf("`%s %s`", strings.ToUpper(method), path)
			if operation["x-isthmus-served"] == true {
				served = append(served, line)
			} else {
				others = append(others, line)
			}
		}
	}
	byPath := func(a, b string) int {
		return strings.Compare(a[strings.Index(a, " "):]+a, b[strings.Index(b, " "):]+b)
	}
	slices.SortFunc(served, byPath)
	slices.SortFunc(others, byPath)
	return served, others
}
