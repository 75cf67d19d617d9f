//go:build linux

package local_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local"
)

// stock makes one box ahead.
func stock(t *testing.T, l *local.Local, change ...func(*adapters.Spec)) string {
	t.Helper()
	s := spec(newID())
	for _, f := range change {
		f(&s)
	}
	b, err := l.Stock(t.Context(), s)
	require.NoError(t, err)
	require.Empty(t, b.SandboxID)
	require.True(t, b.Alive)
	return b.ID
}

func TestAClaimedBoxIsLikeAnyOther(t *testing.T) {
	l := open(t)
	ahead := stock(t, l, online)
	s := spec(newID())
	_, err := l.Claim(t.Context(), s)
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(err), "none without the internet was made ahead")
	online(&s)
	s.Envd.EnvVars = map[string]string{"NAME": "value"}
	begin := time.Now()
	b, err := l.Claim(t.Context(), s)
	require.NoError(t, err)
	t.Log("claimed in", time.Since(begin))
	require.Equal(t, s.BoxID, b.ID)
	require.Equal(t, s.Attempt, b.Attempt)
	require.Equal(t, s.BoxID, b.SandboxID)
	_, err = l.Get(t.Context(), ahead)
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(err))
	r := sh(t, l, b.ID, "user", "hostname; cat /etc/hostname; echo $NAME; sudo whoami")
	require.Equal(t, b.ID+"\n"+b.ID+"\nvalue\nroot\n", r.stdout, r.stderr)
	require.NoError(t, l.Extend(t.Context(), b.ID, time.Now().Add(time.Hour)))
	_, err = l.Claim(t.Context(), s)
	require.Equal(t, adapters.KindExists, adapters.KindOf(err))
	require.NoError(t, l.Destroy(t.Context(), b.ID))
	require.Empty(t, groups(t, ahead))
}

func TestNothingIsClaimedOnAFullDisk(t *testing.T) {
	c := folder(t)
	l, err := local.Open(c)
	require.NoError(t, err)
	ahead := stock(t, l)
	require.NoError(t, l.Close())

	c.KeepFreeMB = 1 << 40 // more than any disk has
	l, err = local.Open(c)
	require.NoError(t, err)
	t.Cleanup(func() { closed(t, l, c) })
	_, err = l.Claim(t.Context(), spec(newID()))
	require.Equal(t, adapters.KindCapacity, adapters.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "the data folder is full")
	require.NoError(t, l.Unstock(t.Context(), ahead), "it is still in stock, and can give way")
}

func TestABoxIsClaimedOnce(t *testing.T) {
	l := open(t)
	for range 2 {
		stock(t, l)
	}
	var won atomic.Int32
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			_, err := l.Claim(t.Context(), spec(newID()))
			if err == nil {
				won.Add(1)
			} else if adapters.KindOf(err) != adapters.KindNotFound {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.Equal(t, int32(2), won.Load())
}

func TestStockedAndClaimedBoxesOutliveTheirFacade(t *testing.T) {
	c := folder(t)
	l, err := local.Open(c)
	require.NoError(t, err)
	stock(t, l)
	s := spec(newID())
	_, err = l.Claim(t.Context(), s)
	require.NoError(t, err)
	ahead := stock(t, l)
	require.NoError(t, l.Close())

	l, err = local.Open(c)
	require.NoError(t, err)
	t.Cleanup(func() { closed(t, l, c) })
	require.Equal(t, s.BoxID+"\n", sh(t, l, s.BoxID, "user", "hostname").stdout)
	b, err := l.Get(t.Context(), ahead)
	require.NoError(t, err)
	require.Empty(t, b.SandboxID)
	s = spec(newID())
	_, err = l.Claim(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, s.BoxID+"\n", sh(t, l, s.BoxID, "user", "hostname").stdout)
}

func TestAStockedBoxEndsAtItsDeadline(t *testing.T) {
	l := open(t)
	id := stock(t, l, func(s *adapters.Spec) { s.Envd.Deadline = time.Now().Add(2 * time.Second) })
	ended, err := l.Ended(id)
	require.NoError(t, err)
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("it outlived its deadline")
	}
	_, err = l.Claim(t.Context(), spec(newID()))
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(err))
}

func TestAStockedBoxIsKeptLonger(t *testing.T) {
	l := open(t)
	short := stock(t, l, func(s *adapters.Spec) { s.Envd.Deadline = time.Now().Add(time.Minute) })
	require.NoError(t, l.Extend(t.Context(), short, time.Now().Add(time.Hour)))
	require.NoError(t, l.Extend(t.Context(), short, time.Now().Add(200*time.Millisecond)))
	ended, err := l.Ended(short)
	require.NoError(t, err)
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("its deadline was not moved")
	}
	require.NoError(t, l.Unstock(t.Context(), short), "what is left of it goes")

	ahead, s := stock(t, l), spec(newID())
	_, err = l.Claim(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(l.Extend(t.Context(), ahead, time.Now())))
	require.NoError(t, l.Extend(t.Context(), s.BoxID, time.Now().Add(time.Hour)))
}

func TestOnlyWhatNobodyClaimedIsTakenOutOfStock(t *testing.T) {
	l := open(t)
	serving := create(t, l)
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(l.Unstock(t.Context(), serving)))
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(l.Unstock(t.Context(), newID())))
	for range 4 {
		ahead := stock(t, l)
		var claimed, taken error
		var both sync.WaitGroup
		s := spec(newID())
		both.Go(func() { _, claimed = l.Claim(t.Context(), s) })
		both.Go(func() { taken = l.Unstock(t.Context(), ahead) })
		both.Wait()
		require.NotEqual(t, claimed == nil, taken == nil, "claim %v, unstock %v", claimed, taken)
		if claimed == nil {
			require.Equal(t, s.BoxID+"\n", sh(t, l, s.BoxID, "user", "hostname").stdout)
			continue
		}
		require.Empty(t, groups(t, ahead))
	}
}

func TestABoxOfAnotherVersionIsNotClaimed(t *testing.T) {
	l := open(t)
	stock(t, l, func(s *adapters.Spec) { s.Template.Version = "1" })
	s := spec(newID())
	s.Template.Version = "2"
	_, err := l.Claim(t.Context(), s)
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(err))
	s.Template.Version = "1"
	_, err = l.Claim(t.Context(), s)
	require.NoError(t, err)
}
