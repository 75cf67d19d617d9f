package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheKernelThatIsNeeded(t *testing.T) {
	for _, c := range []struct {
		release   string
		root      bool
		isolation string
		want      bool
	}{
		{"5.15.0-91-generic", true, "", false},
		{"5.18.19", true, "", false},
		{"5.19.0", true, "", true},
		{"6.1.0-18-amd64", true, "", true},
		{"5.15.0-91-generic", true, "process", true},
		{"5.15.0-91-generic", false, "", true},
		{"5.12.1", false, "", false},
		{"4.19.0", true, "", false},
		{"nonsense", false, "", false},
	} {
		require.Equal(t, c.want, newEnough(c.release, oldestKernel(c.root, c.isolation)), "%+v", c)
	}
}

func TestServeDoesNotOfferWhatIsNotBuilt(t *testing.T) {
	help := must(t, "serve", "--help")
	require.NotContains(t, help, "ns or")
	require.NotContains(t, help, "single")
}
