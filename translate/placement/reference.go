package placement

import (
	"fmt"
	"strings"

	"github.com/isthmus/isthmus/adapters"
)

// Reference returns the table of the keys as Markdown, made from the grammar itself: the documentation and
// whoever shows it hold what the parser reads and the filter uses.
func Reference() string {
	var b strings.Builder
	group := ""
	for _, k := range grammar() {
		if k.Group != group {
			group = k.Group
			fmt.Fprintf(&b, "\n### %s\n\n| key | values | means | example | a later layer | from |\n| --- | --- | --- | --- | --- | --- |\n", group)
		}
		join := "replaces"
		if k.Narrows() {
			join = "narrows"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | `%s=%s` | %s | %s |\n", k.Name, k.Values, k.Meaning, k.Name, k.Example, join, k.Lowest.short())
	}
	return strings.TrimPrefix(b.String(), "\n")
}

func (s Source) short() string {
	return [...]string{"pool", "policy", "template", "metadata", "header"}[s]
}

// AfterReference returns the table of what follows from a failed attempt, as Markdown.
func AfterReference() string {
	kinds := []adapters.Kind{
		adapters.KindInvalid, adapters.KindNotFound, adapters.KindExists, adapters.KindPrecondition, adapters.KindCapacity,
		adapters.KindRateLimited, adapters.KindTeamLimit, adapters.KindQuota, adapters.KindUnavailable, adapters.KindCredentials,
		adapters.KindUnsupported, adapters.KindDeclined, adapters.KindUnknownOutcome, adapters.KindInternal, FailedPostCheck,
	}
	var b strings.Builder
	b.WriteString("| an attempt ends with | then | the breaker sees | the pool rests |\n| --- | --- | --- | --- |\n")
	for _, kind := range kinds {
		c := After(kind)
		rests := "–"
		if c.Rest {
			rests = "as long as the provider asks, else " + brief(c.RestFor)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", kind, c.Step, c.Mark, rests)
	}
	return b.String()
}
