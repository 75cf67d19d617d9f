//go:build linux

package local_test

import (
	"context"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local"
)

func TestABoxLivesFromCreateToDestroy(t *testing.T) {
	l := open(t)
	id := create(t, l)
	if os.Getuid() == 0 {
		require.NotEmpty(t, groups(t, id))
	}

	c, e := client(t, l, id)
	resp, err := c.Get(e.URL.String() + "/health")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusNoContent, resp.StatusCode)

	r := sh(t, l, id, "user", "whoami; id -u; pwd; hostname; echo to stderr >&2; exit 3")
	require.Equal(t, result{code: 3, stdout: "user\n1000\n/home/user\n" + id + "\n", stderr: "to stderr\n"}, r)

	b, err := l.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "attempt of "+id, b.Attempt)
	require.Equal(t, id, b.SandboxID)
	require.True(t, b.Alive)

	ended, err := l.Ended(id)
	require.NoError(t, err)
	require.NoError(t, l.Destroy(t.Context(), id))
	<-ended
	require.Empty(t, groups(t, id))
	require.NoError(t, l.Destroy(t.Context(), id), "twice is fine")
	_, err = l.Get(t.Context(), id)
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(err))
	_, err = l.Reach(t.Context(), id)
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(err))
}

func TestEverythingOfAGoneBoxIsNotFound(t *testing.T) {
	l := open(t)
	_, measured := l.Measure(t.Context(), "none")
	_, journal := l.Entries(t.Context(), "none", 0)
	_, ended := l.Ended("none")
	extended := l.Extend(t.Context(), "none", time.Now())
	for _, err := range []error{measured, journal, ended, extended} {
		require.Equal(t, adapters.KindNotFound, adapters.KindOf(err))
	}
	require.NoError(t, l.Destroy(t.Context(), "../../etc"))
}

func TestASecondCreateOfOneIDIsRefused(t *testing.T) {
	l := open(t)
	id := create(t, l)
	_, err := l.Create(t.Context(), spec(id))
	require.Equal(t, adapters.KindExists, adapters.KindOf(err))
	require.Equal(t, "user\n", sh(t, l, id, "user", "whoami").stdout, "the first one is untouched")
}

func TestCreatesThatCannotBe(t *testing.T) {
	l := open(t, func(c *local.Config) {
		c.Max = adapters.Resources{CPU: 2, MemoryMB: 512, DiskMB: 512}
		c.Machine.Boxes = 1
	})
	for name, test := range map[string]struct {
		change func(*adapters.Spec)
		want   adapters.Kind
	}{
		"bad id":           {func(s *adapters.Spec) { s.BoxID = "../x" }, adapters.KindInvalid},
		"no cpu":           {func(s *adapters.Spec) { s.Resources.CPU = 0 }, adapters.KindInvalid},
		"a GPU":            {func(s *adapters.Spec) { s.GPU.Kind = "t4" }, adapters.KindUnsupported},
		"too many cpus":    {func(s *adapters.Spec) { s.Resources.CPU = 3 }, adapters.KindUnsupported},
		"too much memory":  {func(s *adapters.Spec) { s.Resources.MemoryMB = 513 }, adapters.KindUnsupported},
		"too much disk":    {func(s *adapters.Spec) { s.Resources.DiskMB = 513 }, adapters.KindUnsupported},
		"unknown template": {func(s *adapters.Spec) { s.Template.Name = "none" }, adapters.KindNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			s := spec(newID())
			test.change(&s)
			_, err := l.Create(t.Context(), s)
			require.Equal(t, test.want, adapters.KindOf(err), "%v", err)
		})
	}
	id := create(t, l)
	_, err := l.Create(t.Context(), spec(newID()))
	require.Equal(t, adapters.KindCapacity, adapters.KindOf(err))
	require.NoError(t, l.Destroy(t.Context(), id))
	create(t, l)
}

func TestACancelledCreateLeavesNothing(t *testing.T) {
	l := open(t)
	for _, after := range []time.Duration{0, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 15 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		id := newID()
		_, err := l.Create(ctx, spec(id))
		cancel()
		if err == nil {
			continue // it was faster
		}
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Empty(t, groups(t, id))
		_, err = l.Get(t.Context(), id)
		require.Equal(t, adapters.KindNotFound, adapters.KindOf(err))
	}
}

func TestManyBoxesAtOnce(t *testing.T) {
	l := open(t)
	ids := make([]string, 20)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			s := spec(newID())
			if _, err := l.Create(t.Context(), s); err != nil {
				t.Error(err)
				return
			}
			ids[i] = s.BoxID
		})
	}
	all.Wait()
	require.NotContains(t, ids, "")
	for _, id := range ids {
		all.Go(func() {
			if r := sh(t, l, id, "user", "hostname"); r.stdout != id+"\n" {
				t.Errorf("%s says %+v", id, r)
			}
			if err := l.Destroy(t.Context(), id); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		require.Empty(t, groups(t, id))
	}
}

func TestTheDeadlineEndsABoxByItself(t *testing.T) {
	l := open(t)
	id := create(t, l, func(s *adapters.Spec) { s.Envd.Deadline = time.Now().Add(time.Hour) })
	ended, err := l.Ended(id)
	require.NoError(t, err)
	later := time.Now().Add(2 * time.Hour)
	for range 2 { // the second time it is known
		require.NoError(t, l.Extend(t.Context(), id, later))
	}
	require.NoError(t, l.Extend(t.Context(), id, time.Now()))
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("the box outlived its deadline")
	}
	b, err := l.Get(t.Context(), id)
	require.NoError(t, err)
	require.False(t, b.Alive, "only its remains are left")
	_, err = l.Measure(t.Context(), id)
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(err))
	err = l.Extend(t.Context(), id, time.Now())
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(err))
	require.NoError(t, l.Destroy(t.Context(), id))
	require.Empty(t, groups(t, id))
}

func TestTheJournalTellsOfProcesses(t *testing.T) {
	l := open(t)
	id := create(t, l)
	require.Equal(t, 7, sh(t, l, id, "user", "exit 7").code)
	entries, err := l.Entries(t.Context(), id, 0)
	require.NoError(t, err)
	require.NotEmpty(t, entries)
	later, err := l.Entries(t.Context(), id, entries[len(entries)-1].Number)
	require.NoError(t, err)
	require.Empty(t, later)
}
