//go:build linux

package local_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local"
)

// of makes a box of a snapshot.
func of(s adapters.Snapshot) func(*adapters.Spec) {
	return func(spec *adapters.Spec) { spec.Template.Snapshot = s.Ref }
}

func TestBoxesOfASnapshot(t *testing.T) {
	c := folder(t)
	l, err := local.Open(c)
	require.NoError(t, err)
	t.Cleanup(func() { closed(t, l, c) })
	id := create(t, l)
	if os.Getuid() != 0 { // without a disk of its own a box is not copied
		require.Nil(t, adapters.PowersOf(l).Snapshotter)
		_, err = l.Snapshot(t.Context(), spec(id), newID())
		require.Equal(t, adapters.KindUnsupported, adapters.KindOf(err))
		return
	}
	require.Zero(t, sh(t, l, id, "user", `echo before > ~/a; sudo sh -c 'rm -r /usr/share/doc; echo roots > /root/b; chmod 600 /root/b'
		(while :; do date +%N >> /tmp/busy; done) >/dev/null 2>&1 &`).code)
	name := newID()
	s, err := l.Snapshot(t.Context(), spec(id), name)
	require.NoError(t, err)
	require.Equal(t, adapters.LevelFilesystem, s.Level)
	require.Positive(t, s.SizeBytes)
	again, err := l.Snapshot(t.Context(), spec(id), name)
	require.NoError(t, err)
	require.Equal(t, s.CreatedAt.UnixNano(), again.CreatedAt.UnixNano(), "twice with one name is one copy")
	require.Equal(t, "1\nbefore\n", sh(t, l, id, "user", "pgrep -f while >/dev/null && echo 1; cat ~/a; echo after > ~/a").stdout, "it runs on")

	require.NoError(t, l.Destroy(t.Context(), id))
	used, err := local.Layers(c.DataDir)
	require.NoError(t, err)
	require.Equal(t, []string{os.Getenv(envRoot)}, used, "the image is still needed")
	for _, more := range []int{0, 512} {
		other := create(t, l, of(s), func(s *adapters.Spec) { s.Resources.DiskMB += more })
		r := sh(t, l, other, "user", "cat ~/a; sudo cat /root/b; stat -c %U ~/a /root/b; ls -d /usr/share/doc; tail -n +2 /tmp/busy | grep -qv '^[0-9]*$' || echo whole")
		require.Equal(t, "before\nroots\nuser\n", strings.TrimSuffix(r.stdout, "whole\n"), r.stderr)
		size, err := l.Measure(t.Context(), other)
		require.NoError(t, err)
		require.Greater(t, size.DiskTotal, int64(200+more*9/10)<<20)
		pause(t, l, other)
		second, err := l.Snapshot(t.Context(), spec(other), newID())
		require.NoError(t, err, "a paused one can be copied too")
		require.NoError(t, l.Forget(t.Context(), second))
		resume(t, l, other)
	}
	_, err = l.Create(t.Context(), small(spec(newID()), s))
	require.Equal(t, adapters.KindInvalid, adapters.KindOf(err))

	all, err := l.Snapshots(t.Context(), deployment)
	require.NoError(t, err)
	require.Len(t, all, 1)
	none, err := l.Snapshots(t.Context(), "another")
	require.NoError(t, err)
	require.Empty(t, none)
	for range 2 {
		require.NoError(t, l.Forget(t.Context(), s))
	}
	_, err = l.Create(t.Context(), func() adapters.Spec { s2 := spec(newID()); of(s)(&s2); return s2 }())
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(err))
	for _, ref := range []string{"../boxes", "", "."} {
		require.NoError(t, l.Forget(t.Context(), adapters.Snapshot{Ref: ref}))
	}
}

func small(s adapters.Spec, of adapters.Snapshot) adapters.Spec {
	s.Template.Snapshot, s.Resources.DiskMB = of.Ref, 64
	return s
}

func TestHalfSnapshotsAreSwept(t *testing.T) {
	c := folder(t)
	half := filepath.Join(c.DataDir, "local/snapshots/new-123")
	require.NoError(t, os.MkdirAll(half, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(half, "disk"), []byte("half"), 0o600))
	l, err := local.Open(c)
	require.NoError(t, err)
	t.Cleanup(func() { closed(t, l, c) })
	require.NoDirExists(t, half)
}

// A facade that died while it copied a box has left it standing still.
func TestAFrozenBoxIsThawedByTheNextFacade(t *testing.T) {
	c := folder(t)
	l, err := local.Open(c)
	require.NoError(t, err)
	id := create(t, l)
	require.NoError(t, l.Close())
	for _, g := range groups(t, id) {
		for file, word := range map[string]string{"freezer.state": "FROZEN", "cgroup.freeze": "1"} {
			if _, err := os.Stat(filepath.Join(g, file)); err == nil {
				require.NoError(t, os.WriteFile(filepath.Join(g, file), []byte(word), 0))
			}
		}
	}
	l, err = local.Open(c)
	require.NoError(t, err)
	t.Cleanup(func() { closed(t, l, c) })
	begin := time.Now()
	require.Equal(t, "user\n", sh(t, l, id, "user", "whoami").stdout)
	t.Log("answered after", time.Since(begin))
}
