package wire

import (
	"fmt"
	"strings"
	"testing"
)

// TestEveryClassOfBadInputIsWide keeps the tables as wide as they were promised to be.
func TestEveryClassOfBadInputIsWide(t *testing.T) {
	rows, names := map[string]int{}, map[string]bool{}
	for _, c := range Cases() {
		if names[c.Name] {
			t.Errorf("two cases are called %q", c.Name)
		}
		names[c.Name] = true
		if rest, refused := strings.CutPrefix(c.Name, "refuses/"); refused {
			class, _, _ := strings.Cut(rest, "/")
			rows[class]++
		}
	}
	total := 0
	for class, count := range rows {
		total += count
		if count < 12 {
			t.Errorf("%s: %d rows, want at least 12", class, count)
		}
	}
	if total < 100 || len(rows) < 8 {
		t.Errorf("%d rows in %d classes, want at least 100 in 8: %v", total, len(rows), rows)
	}
	t.Log(fmt.Sprint(rows, " ", total, " of ", len(names)))
}
