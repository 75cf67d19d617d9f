//go:build linux

package local_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local"
)

// pause pauses a box and looks that nothing of it runs.
func pause(t *testing.T, l *local.Local, id string) {
	t.Helper()
	require.NoError(t, l.Pause(t.Context(), id, adapters.LevelFilesystem))
	rests(t, l, id)
}

func rests(t *testing.T, l *local.Local, id string) {
	t.Helper()
	require.Empty(t, groups(t, id))
	b, err := l.Get(t.Context(), id)
	require.NoError(t, err)
	require.True(t, b.Alive && b.Paused)
	require.Equal(t, "attempt of "+id, b.Attempt)
	all, err := l.List(t.Context(), deployment)
	require.NoError(t, err)
	require.Contains(t, all, b)
	_, err = l.Reach(t.Context(), id)
	require.Equal(t, adapters.KindPrecondition, adapters.KindOf(err))
}

func resume(t *testing.T, l *local.Local, id string, change ...func(*adapters.Spec)) {
	t.Helper()
	s := spec(id)
	for _, f := range change {
		f(&s)
	}
	b, err := l.Resume(t.Context(), s)
	require.NoError(t, err, "%v", errors.Unwrap(err))
	require.True(t, b.Alive && !b.Paused)
}

func TestAPausedBoxKeepsItsFiles(t *testing.T) {
	l := open(t)
	id := create(t, l)
	require.Zero(t, sh(t, l, id, "user", "echo mine > /home/user/a; sudo sh -c 'rm -r /usr/share/doc; echo roots > /root/b'; setsid sleep 999 >/dev/null 2>&1 &").code)
	host, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	require.NoError(t, err)
	boots := map[string]bool{string(host): true}
	for range 2 {
		ended, err := l.Ended(id)
		require.NoError(t, err)
		boot := sh(t, l, id, "user", "cat /proc/sys/kernel/random/boot_id").stdout
		require.Len(t, boot, len(host))
		require.NotContains(t, boots, boot, "each start has a boot id of its own")
		boots[boot] = true
		pause(t, l, id)
		select {
		case <-ended:
			require.Fail(t, "a pause is no end")
		default:
		}
		require.NoError(t, l.Pause(t.Context(), id, adapters.LevelFilesystem), "twice is fine")
		resume(t, l, id)
		r := sh(t, l, id, "user", "cat ~/a; sudo cat /root/b; stat -c %U ~/a; ls -d /usr/share/doc; pgrep -c sleep; hostname")
		require.Equal(t, "mine\nroots\nuser\n0\n"+id+"\n", r.stdout)
	}
	resume(t, l, id) // it runs already
	require.Equal(t, adapters.KindUnsupported, adapters.KindOf(l.Pause(t.Context(), id, adapters.LevelMemory)))
	require.Equal(t, "mine\n", sh(t, l, id, "user", "cat ~/a").stdout, "nothing was changed")
	pause(t, l, id)
	require.NoError(t, l.Destroy(t.Context(), id))
	_, err = l.Resume(t.Context(), spec(id))
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(err))
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(l.Pause(t.Context(), id, adapters.LevelFilesystem)))
}

func TestAPausedBoxOutlivesTheFacade(t *testing.T) {
	c := folder(t)
	l, err := local.Open(c)
	require.NoError(t, err)
	id := create(t, l)
	require.Zero(t, sh(t, l, id, "user", "echo mine > ~/a").code)
	pause(t, l, id)
	require.NoError(t, l.Close())

	l, err = local.Open(c)
	require.NoError(t, err)
	t.Cleanup(func() { closed(t, l, c) })
	rests(t, l, id)
	used, err := local.Layers(c.DataDir)
	require.NoError(t, err)
	require.NotEmpty(t, used, "the image is still needed")
	resume(t, l, id, online)
	require.Equal(t, "mine\n", sh(t, l, id, "user", "cat ~/a").stdout)
}

// A facade may die between writing down that a box is to be paused and its end.
func TestAPauseIsFinishedByTheNextFacade(t *testing.T) {
	c := folder(t)
	l, err := local.Open(c)
	require.NoError(t, err)
	id := create(t, l)
	require.Zero(t, sh(t, l, id, "user", "echo mine > ~/a").code)
	require.NoError(t, l.Close())
	path := filepath.Join(c.DataDir, "local/boxes", id, "box.json")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append([]byte(`{"paused":true,`), text[1:]...), 0o600))

	l, err = local.Open(c)
	require.NoError(t, err)
	t.Cleanup(func() { closed(t, l, c) })
	rests(t, l, id)
	resume(t, l, id)
	require.Equal(t, "mine\n", sh(t, l, id, "user", "cat ~/a").stdout)
}

func TestPausedBoxesUseNoRoomButTheirDisk(t *testing.T) {
	l := open(t, func(c *local.Config) { c.Machine = local.Ceiling{Boxes: 1, MemoryMB: 256, DiskMB: 512} })
	first := create(t, l)
	pause(t, l, first)
	second := create(t, l)
	_, err := l.Resume(t.Context(), spec(first))
	require.Equal(t, adapters.KindCapacity, adapters.KindOf(err))
	rests(t, l, first)
	pause(t, l, second)
	_, err = l.Create(t.Context(), spec(newID()))
	require.Equal(t, adapters.KindCapacity, adapters.KindOf(err), "the disks of both are there")
	resume(t, l, first)
}

func TestPauseResumeAndDestroyRace(t *testing.T) {
	l := open(t)
	id := create(t, l)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { _ = l.Pause(t.Context(), id, adapters.LevelFilesystem) })
		all.Go(func() { _, _ = l.Resume(t.Context(), spec(id)) })
	}
	all.Go(func() { require.NoError(t, l.Destroy(t.Context(), id)) })
	all.Wait()
	_, err := l.Get(t.Context(), id)
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(err))
	require.Empty(t, groups(t, id))
}

func TestACancelledResumeLeavesABoxThatSleeps(t *testing.T) {
	l := open(t)
	id := create(t, l)
	require.Zero(t, sh(t, l, id, "user", "echo mine > ~/a").code)
	for _, after := range []time.Duration{0, 3 * time.Millisecond, 10 * time.Millisecond} {
		pause(t, l, id)
		ctx, cancel := context.WithTimeout(t.Context(), after)
		_, err := l.Resume(ctx, spec(id))
		cancel()
		if err != nil {
			require.ErrorIs(t, err, context.DeadlineExceeded)
			rests(t, l, id)
			resume(t, l, id)
		}
		require.Equal(t, "mine\n", sh(t, l, id, "user", "cat ~/a").stdout)
	}
}
