package idrange

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLeasesOutliveTheirTable(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(dir, 200_000, 0)
	require.NoError(t, err)
	a, err := l.Take("a")
	require.NoError(t, err)
	b, err := l.Take("b")
	require.NoError(t, err)
	require.Equal(t, []uint32{200_000, 265_536}, []uint32{a, b})

	l, err = Open(dir, 200_000, 0)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"a", "b"}, l.Owners())
	require.NoError(t, l.Rename("a", "d"))
	require.ElementsMatch(t, []string{"d", "b"}, l.Owners())
	require.NoError(t, l.Release("d"))
	require.NoError(t, l.Release("d"), "twice is fine")
	c, err := l.Take("c")
	require.NoError(t, err)
	require.Equal(t, uint32(200_000), c)
}

func TestReleasedRangesAreUsedLast(t *testing.T) {
	l, err := Open(t.TempDir(), 200_000, 0)
	require.NoError(t, err)
	_, err = l.Take("a")
	require.NoError(t, err)
	require.NoError(t, l.Release("a"))
	next, err := l.Take("b")
	require.NoError(t, err)
	require.Equal(t, uint32(265_536), next)
}

func TestALeaseWithoutAnOwnerIsNone(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "200000"), nil, 0o600))
	l, err := Open(dir, 200_000, 0)
	require.NoError(t, err)
	require.Empty(t, l.Owners())
	base, err := l.Take("a")
	require.NoError(t, err)
	require.Equal(t, uint32(200_000), base)
}

func TestRangesEnd(t *testing.T) {
	const first = 1<<32 - 1 - 2*Size
	l, err := Open(t.TempDir(), first, 0)
	require.NoError(t, err)
	for _, owner := range []string{"a", "b"} {
		base, err := l.Take(owner)
		require.NoError(t, err)
		require.Less(t, uint64(base)+Size, uint64(1)<<32)
	}
	_, err = l.Take("c")
	require.ErrorIs(t, err, ErrNone)
	require.NoError(t, l.Release("b"))
	_, err = l.Take("c")
	require.NoError(t, err)
}

func TestRangesEndAtTheLast(t *testing.T) {
	l, err := Open(t.TempDir(), 200_000, 200_000+2*Size-1)
	require.NoError(t, err)
	for _, owner := range []string{"a", "b"} {
		_, err := l.Take(owner)
		require.NoError(t, err)
	}
	_, err = l.Take("c")
	require.ErrorIs(t, err, ErrNone, "the next range is another's")
}

func TestRangesOfAnotherBeginAreNotShared(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(dir, 200_000, 0)
	require.NoError(t, err)
	_, err = l.Take("a")
	require.NoError(t, err)
	for first, want := range map[uint32]uint32{
		199_999:              199_999 + 2*Size,
		200_001:              200_001 + Size,
		200_000 + Size - 1:   200_000 + 2*Size - 1,
		200_000 + Size:       200_000 + Size,
		200_000 - Size:       200_000 - Size,
		200_000 - 2*Size + 1: 200_000 - 2*Size + 1,
	} {
		l, err := Open(dir, first, 0)
		require.NoError(t, err)
		got, err := l.Take("b")
		require.NoError(t, err)
		require.Equal(t, want, got, "from %d", first)
		require.NoError(t, l.Release("b"))
	}
}

func TestARenameIsWholeOrNot(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(dir, 200_000, 0)
	require.NoError(t, err)
	_, err = l.Take("a")
	require.NoError(t, err)
	aside := filepath.Join(dir, "200000.new")
	require.NoError(t, os.Mkdir(aside, 0o700))
	require.Error(t, l.Rename("a", "b"))
	require.Equal(t, []string{"a"}, l.Owners())
	require.NoError(t, os.Remove(aside))
	require.NoError(t, os.WriteFile(aside, []byte("half"), 0o600), "a writer died")
	l, err = Open(dir, 200_000, 0)
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, l.Owners())
	require.NoFileExists(t, aside, "what a dead writer left goes with the next start")
	require.NoError(t, l.Rename("a", "b"))
	require.NoFileExists(t, aside)
}

func TestLeasesOfAnotherTableAreLeftAlone(t *testing.T) {
	far := t.TempDir()
	l, err := Open(far, 200_000, 0)
	require.NoError(t, err)
	for _, owner := range []string{"a", "b"} {
		_, err := l.Take(owner)
		require.NoError(t, err)
	}
	l, err = Open(t.TempDir(), 200_000+Size, 0, far, filepath.Join(far, "none"))
	require.NoError(t, err)
	base, err := l.Take("c")
	require.NoError(t, err)
	require.Equal(t, uint32(200_000+2*Size), base)
	require.Equal(t, []string{"c"}, l.Owners())
}
