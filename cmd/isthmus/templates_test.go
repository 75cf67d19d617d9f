package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local/images"
)

// A client learns about the name that it asked for, and the operator about the one in the configuration.
func TestANameWhoseImageIsNotThere(t *testing.T) {
	store, err := images.Open(t.TempDir(), images.Options{})
	require.NoError(t, err)
	_, err = templates{images: store, names: map[string]string{"mine": "debian-1"}}.Root(t.Context(), "mine")
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(err))
	for _, part := range []string{"template 'mine' not found", "'debian-1'", "local.images"} {
		require.ErrorContains(t, err, part)
	}
}
