package stack

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestApartIsACall(t *testing.T) {
	called := false
	Apart(func() { called = true })
	require.True(t, called)
	require.PanicsWithValue(t, "why", func() { Apart(func() { panic("why") }) })
}
