package images

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// versions imports one image after the other under the same name.
func versions(t *testing.T, s *Store, marks ...string) (all []Image) {
	t.Helper()
	for _, mark := range marks {
		img, err := s.Import(t.Context(), "mine", save(t, pack(t, append(small(), reg(mark))...)))
		require.NoError(t, err)
		require.FileExists(t, filepath.Join(img.Root, mark))
		all = append(all, img)
	}
	return all
}

func none() ([]string, error) { return nil, nil }

func TestCollectRemovesWhatWasReplaced(t *testing.T) {
	s := newStore(t)
	s.options.InUse = none
	all := versions(t, s, "a", "b")
	require.NoDirExists(t, filepath.Dir(all[0].Root))
	other, err := s.Import(t.Context(), "other", save(t, pack(t, append(small(), reg("b"))...)))
	require.NoError(t, err)
	require.Equal(t, all[1].Root, other.Root)
	versions(t, s, "c")
	require.DirExists(t, all[1].Root, "it has a name still")
	_, err = s.Import(t.Context(), "mine", save(t, pack(t, reg("no/bash"))))
	require.Error(t, err)
	list, err := s.List()
	require.NoError(t, err)
	require.Len(t, list, 2)
	left, err := filepath.Glob(filepath.Join(s.dir, "*-*"))
	require.NoError(t, err)
	require.Len(t, left, 2)
}

func TestCollectKeepsWhatIsUsed(t *testing.T) {
	s := newStore(t)
	var used []string
	s.options.InUse = func() ([]string, error) { return used, nil }
	first := versions(t, s, "a")[0]
	used = []string{first.Root}
	versions(t, s, "b", "c")
	require.FileExists(t, filepath.Join(first.Root, "a"))
	left, err := filepath.Glob(filepath.Join(s.dir, "*-*"))
	require.NoError(t, err)
	require.Len(t, left, 2, "the one between was nobody's")
	used = nil
	versions(t, s, "d")
	require.NoDirExists(t, first.Root)
}

func TestCollectKeepsInDoubt(t *testing.T) {
	s := newStore(t)
	first := versions(t, s, "a")[0]
	for name, inUse := range map[string]func() ([]string, error){
		"nobody can say":            func() ([]string, error) { return nil, errors.New("unreadable") },
		"a layer that is not there": func() ([]string, error) { return []string{filepath.Join(s.dir, "elsewhere")}, nil },
		"a box that comes in between": func() ([]string, error) {
			if _, err := os.Stat(first.Root); err == nil {
				return nil, nil
			}
			return []string{first.Root}, nil
		},
		"nobody was named to ask": nil,
	} {
		s.options.InUse = inUse
		versions(t, s, "b", "a", "b")
		require.FileExists(t, filepath.Join(first.Root, "a"), name)
	}
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(s.dir, link))
	shared, err := Open(link, s.options)
	require.NoError(t, err)
	shared.options.InUse = none
	versions(t, shared, "c")
	require.FileExists(t, filepath.Join(first.Root, "a"), "others may use the folder too")
	s.options.InUse = none
	versions(t, s, "c")
	require.NoDirExists(t, first.Root)
}
