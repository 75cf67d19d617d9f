package placement

import (
	flags "flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flags.Bool("update", false, "write the generated tables into docs/placement.md")

const page = "../../docs/placement.md"

func TestTheDocumentationHoldsTheTables(t *testing.T) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	want := string(text)
	for name, table := range map[string]string{"keys": Reference(), "after": AfterReference()} {
		block := regexp.MustCompile(`(?s)<!-- ` + name + `: generated[^\n]* -->\n.*?<!-- /` + name + ` -->`)
		require.Regexp(t, block, want)
		want = block.ReplaceAllStringFunc(want, func(old string) string {
			first, _, _ := strings.Cut(old, "\n")
			return first + "\n" + table + "<!-- /" + name + " -->"
		})
	}
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(text), "run: go test ./translate/placement -run Documentation -update")
}

func TestTheExamplesOfTheDocumentationAreRead(t *testing.T) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	metadata := regexp.MustCompile(`"isthmus:([a-z-]+)": "([^"]*)"`).FindAllStringSubmatch(string(text), -1)
	headers := regexp.MustCompile(`"?X-Isthmus-Require"?: "?([^"\n]+)"?`).FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(metadata), 4)
	require.NotEmpty(t, headers)
	for _, pair := range metadata {
		_, err := FromPairs(Metadata, map[string]string{pair[1]: pair[2]}, nil)
		require.NoError(t, err)
	}
	for _, line := range headers {
		_, err := Parse(Header, line[1], nil)
		require.NoError(t, err)
	}
}
