//go:build linux

package subid

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSearch(t *testing.T) {
	names := []string{"1000", "ann"}
	for name, c := range map[string]struct {
		file string
		want uint64 // 0: none
	}{
		"by name":               {"bob:1:65536\nann:100000:65536\n", 100000},
		"by number":             {"1000:200000:65536\n", 200000},
		"just enough":           {"ann:300000:65535\n", 300000},
		"the first large one":   {"ann:1:10\nann:400000:65536\nann:500000:65536\n", 400000},
		"too few":               {"ann:100000:65534\n", 0},
		"somebody else's":       {"anna:100000:65536\n10000:1:65536\n", 0},
		"what is no line of it": {"# ann\nann\nann:x:65536\nann:1:y\nann:-1:65536\nann:99999999999:65536\n\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := search(strings.NewReader(c.file), names)
			require.Equal(t, c.want, got)
			require.Equal(t, c.want == 0, err != nil)
		})
	}
}
