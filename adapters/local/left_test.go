//go:build linux

package local_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local"
	"github.com/isthmus/isthmus/envd"
)

// broken are images whose layer is not there.
type broken struct{}

func (broken) Root(_ context.Context, name string) (local.Root, error) {
	return local.Root{Name: name, Layers: []string{"/no/such/layer"}}, nil
}

// stuck keeps a box's folder from being removed until the function that it returns is called.
func stuck(t *testing.T, box string) (free func()) {
	held := filepath.Join(box, "held")
	require.NoError(t, os.Mkdir(held, 0o700))
	require.NoError(t, unix.Mount("none", held, "tmpfs", 0, ""))
	return func() {
		now, err := filepath.Glob(filepath.Join(filepath.Dir(box), "*", "held")) // a claim moves the folder
		require.NoError(t, err)
		for _, path := range now {
			require.NoError(t, unix.Unmount(path, 0))
		}
	}
}

// found requires that everybody finds what is left, and nobody takes it for a sandbox that serves.
func found(t *testing.T, l *local.Local, id string) {
	t.Helper()
	b, err := l.Get(t.Context(), id)
	require.NoError(t, err)
	require.False(t, b.Alive)
	require.Equal(t, id, b.SandboxID)
	all, err := l.List(t.Context(), deployment)
	require.NoError(t, err)
	require.Equal(t, []adapters.Box{b}, all)
	_, err = l.Reach(t.Context(), id)
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(err))
	require.Error(t, l.Destroy(t.Context(), id))
}

func TestWhatAFailedCreateLeavesIsFound(t *testing.T) {
	c := folder(t)
	c.Images = broken{}
	boxes, free := filepath.Join(c.DataDir, "local", "boxes"), func() {}
	c.Secrets = func(id string) (string, string) { // is asked in the middle of a create
		free = stuck(t, filepath.Join(boxes, id))
		return secrets(id)
	}
	l, err := local.Open(c)
	require.NoError(t, err)
	s := spec(newID())
	s.Envd = envd.Config{SandboxID: s.BoxID}
	_, err = l.Create(t.Context(), s)
	require.Equal(t, adapters.KindUnknownOutcome, adapters.KindOf(err), "%v", err)
	found(t, l, s.BoxID)
	_, err = l.Create(t.Context(), s)
	require.Equal(t, adapters.KindExists, adapters.KindOf(err))
	require.NoError(t, l.Close())

	l, err = local.Open(c) // which cannot remove it either
	require.NoError(t, err)
	found(t, l, s.BoxID)
	free()
	require.NoError(t, l.Destroy(t.Context(), s.BoxID))
	_, err = l.Get(t.Context(), s.BoxID)
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(err))
	closed(t, l, c)
}

func TestWhatAFailedClaimLeavesIsFound(t *testing.T) {
	c := folder(t)
	l, err := local.Open(c)
	require.NoError(t, err)
	free := stuck(t, filepath.Join(c.DataDir, "local", "boxes", stock(t, l)))
	s := spec(newID())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = l.Claim(ended, s)
	require.Equal(t, adapters.KindUnknownOutcome, adapters.KindOf(err), "%v", err)
	found(t, l, s.BoxID)
	free()
	require.NoError(t, l.Destroy(t.Context(), s.BoxID))
	closed(t, l, c)
}

func TestAStockedBoxThatIsNotRemovedIsNotClaimed(t *testing.T) {
	c := folder(t)
	l, err := local.Open(c)
	require.NoError(t, err)
	id := stock(t, l)
	free := stuck(t, filepath.Join(c.DataDir, "local", "boxes", id))
	require.Error(t, l.Unstock(t.Context(), id))
	_, err = l.Claim(t.Context(), spec(newID()))
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(err))
	free()
	require.NoError(t, l.Unstock(t.Context(), id))
	closed(t, l, c)
}
