package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestASuiteOfWhichNothingRanIsNoSuccess(t *testing.T) {
	require.NoError(t, looked(1, ""))
	require.ErrorContains(t, looked(0, "creat"), `none has "creat" in its name`)
}
