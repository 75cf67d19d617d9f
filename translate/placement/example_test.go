package placement

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// documented are the pools of the complete example in the documentation.
func documented() []Offer {
	in := func(provider, isolation, region string, price Price) func(*Offer) {
		return pool(func(p *Pool) {
			p.Provider, p.Isolation.Level, p.Price = provider, isolation, price
			p.Regions = []Region{{Name: region}}
		})
	}
	return []Offer{
		offer("own", in("k8s", "gvisor", "eu", Price{Billing: BillSession})),
		offer("modal-a", in("modal", "gvisor", "us", Price{Billing: BillProvisioned, CPUHour: 0.071, MemoryGiBHour: 0.0242})),
		offer("cloud", in("e2b", "microvm", "eu", Price{Billing: BillProvisioned, CPUHour: 0.0504, MemoryGiBHour: 0.0162})),
	}
}

func TestTheCompleteExampleHolds(t *testing.T) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "| what is stated | tried |\n| --- | --- |\n")
	require.True(t, found)
	rows := regexp.MustCompile("(?m)^\\| (nothing|`([^`]*)`) \\| (.*) \\|$").FindAllStringSubmatch(table, -1)
	require.Len(t, rows, 6)
	for _, row := range rows {
		want := []string{}
		for _, name := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(row[3], -1) {
			want = append(want, name[1])
		}
		plan, _ := Decide(asks(t, row[2]), documented(), noon(), Settings{})
		require.Equal(t, want, poolNames(plan), row[1])
	}
}
