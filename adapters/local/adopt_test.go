//go:build linux

package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local"
	"github.com/isthmus/isthmus/adapters/local/inside/proctree"
)

func TestBoxesOutliveAKilledFacade(t *testing.T) {
	c := folder(t)
	first, lines := facade(t, c, "2")
	var ids []string
	for range 2 {
		require.True(t, lines.Scan())
		ids = append(ids, lines.Text())
	}
	_, err := local.Open(c)
	require.Equal(t, adapters.KindPrecondition, adapters.KindOf(err), "one facade at a time: %v", err)
	require.NoError(t, first.Process.Kill())
	_ = first.Wait()

	l, err := local.Open(c)
	require.NoError(t, err)
	t.Cleanup(func() { closed(t, l, c) })
	all, err := l.List(t.Context(), deployment)
	require.NoError(t, err)
	require.Len(t, all, 2)
	for _, b := range all {
		require.Contains(t, ids, b.ID)
		require.True(t, b.Alive)
		require.Equal(t, "attempt of "+b.ID, b.Attempt)
		require.Equal(t, "user\n", sh(t, l, b.ID, "user", "whoami").stdout)
		require.NoError(t, l.Extend(t.Context(), b.ID, time.Now().Add(time.Hour)))
		_, err := l.Measure(t.Context(), b.ID)
		require.NoError(t, err)
	}
	other, err := l.List(t.Context(), "another deployment")
	require.NoError(t, err)
	require.Empty(t, other)

	ended, err := l.Ended(ids[0])
	require.NoError(t, err)
	require.NoError(t, l.Destroy(t.Context(), ids[0]))
	<-ended
	require.Empty(t, groups(t, ids[0]))
}

func TestABoxThatEndedMeanwhileIsRemoved(t *testing.T) {
	c := folder(t)
	first, lines := facade(t, c, "1")
	require.True(t, lines.Scan())
	id := lines.Text()
	require.NoError(t, first.Process.Kill())
	_ = first.Wait()

	l, err := local.Open(c)
	require.NoError(t, err)
	require.NoError(t, l.Extend(t.Context(), id, time.Now().Add(300*time.Millisecond)))
	require.NoError(t, l.Close())
	text, err := os.ReadFile(filepath.Join(c.DataDir, "local", "boxes", id, "box.json"))
	require.NoError(t, err)
	var record struct{ Process struct{ PID int } }
	require.NoError(t, json.Unmarshal(text, &record))
	require.Eventually(t, func() bool {
		s, err := proctree.Read(record.Process.PID)
		return err != nil || s.Dead
	}, 30*time.Second, time.Millisecond)

	l, err = local.Open(c)
	require.NoError(t, err)
	t.Cleanup(func() { closed(t, l, c) })
	_, err = l.Get(t.Context(), id)
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(err))
	require.Empty(t, groups(t, id))
}

// A facade is killed at many moments of its creates. Whatever the next one finds is whole or gone.
func TestAFacadeMayDieAtAnyMoment(t *testing.T) {
	c := folder(t)
	for round := range 12 {
		f, lines := facade(t, c, "-1")
		require.True(t, lines.Scan())
		time.Sleep(time.Duration(round*3) * time.Millisecond) // not for readiness: the moment of the kill
		require.NoError(t, f.Process.Kill())
		_ = f.Wait()

		l, err := local.Open(c)
		require.NoError(t, err)
		all, err := l.List(t.Context(), deployment)
		require.NoError(t, err)
		for _, b := range all {
			require.Equal(t, b.ID+"\n", sh(t, l, b.ID, "user", "hostname").stdout)
			err := l.Destroy(t.Context(), b.ID)
			require.NoError(t, err, "%v", errors.Unwrap(err))
			require.Empty(t, groups(t, b.ID))
		}
		require.NoError(t, l.Close())
		require.Empty(t, remains(t, c), "round %d", round)
	}
}

func TestLettingGoKeepsBoxes(t *testing.T) {
	c := folder(t)
	l, err := local.Open(c)
	require.NoError(t, err)
	id := create(t, l)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	cancel()
	require.NoError(t, <-done)

	l, err = local.Open(c)
	require.NoError(t, err)
	t.Cleanup(func() { closed(t, l, c) })
	require.Equal(t, "user\n", sh(t, l, id, "user", "whoami").stdout)
	require.DirExists(t, "/sys/fs/cgroup")
	_, err = os.Stat(c.DataDir)
	require.NoError(t, err)
}

// A facade is killed at many moments of its claims. A box is then in stock, or claimed, or gone.
func TestAFacadeMayDieAtAnyMomentOfAClaim(t *testing.T) {
	c := folder(t)
	for round := range 12 {
		f, lines := facade(t, c, roleClaims)
		require.True(t, lines.Scan())
		time.Sleep(time.Duration(round) * time.Millisecond / 2) // not for readiness: the moment of the kill
		require.NoError(t, f.Process.Kill())
		_ = f.Wait()

		l, err := local.Open(c)
		require.NoError(t, err)
		all, err := l.List(t.Context(), deployment)
		require.NoError(t, err)
		for _, b := range all {
			if b.SandboxID == "" {
				s := spec(newID())
				s.Network = adapters.Network{Internet: true}
				b, err = l.Claim(t.Context(), s)
				require.NoError(t, err)
			}
			require.Equal(t, b.SandboxID, b.ID)
			require.Equal(t, "attempt of "+b.ID, b.Attempt)
			require.Equal(t, b.ID+"\n", sh(t, l, b.ID, "user", "hostname").stdout)
			require.NoError(t, l.Destroy(t.Context(), b.ID))
			require.Empty(t, groups(t, b.ID))
		}
		require.NoError(t, l.Close())
		require.Empty(t, remains(t, c), "round %d", round)
	}
}
