package egress

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestABudgetLeavesSomethingToOthers(t *testing.T) {
	const all = 1000
	b := NewBudget(all)
	takeAll := func(s *share) int {
		for s.take() {
		}
		return s.held
	}
	first := &share{budget: b}
	require.InDelta(t, all/3, takeAll(first), 1, "one box alone")
	shares, sum := []*share{first}, first.held
	for range 8 {
		s := &share{budget: b}
		require.Positive(t, takeAll(s))
		shares, sum = append(shares, s), sum+s.held
	}
	require.Equal(t, all-sum, b.free)
	for _, s := range shares {
		for s.held > 0 {
			s.give()
		}
	}
	require.Equal(t, all, b.free)
}
