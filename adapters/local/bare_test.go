//go:build linux

package local_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local"
)

// nap is a time to sleep that nobody else on the machine uses.
func nap(seconds int) string { return fmt.Sprintf("%d.%d", seconds, os.Getpid()) }

func bare(c *local.Config) { c.Isolation = "process" }

func online(s *adapters.Spec) { s.Network.Internet = true }

func TestABoxWithoutIsolation(t *testing.T) {
	l := open(t, bare)
	d := l.Describe()
	require.Equal(t, "process", d.Isolation)
	require.True(t, d.Weak)
	require.False(t, d.InternetOff)
	_, err := l.Create(t.Context(), spec(newID()))
	require.Equal(t, adapters.KindUnsupported, adapters.KindOf(err), "the internet cannot be taken away: %v", err)
	_, err = l.Resolve(t.Context(), "none")
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(err))

	id := create(t, l, online)
	r := sh(t, l, id, "user", "pwd; echo $HOME; echo x > file; setsid sleep "+nap(1000)+" > /dev/null 2>&1 < /dev/null & echo $!")
	lines := strings.Fields(r.stdout)
	require.Len(t, lines, 3, r.stderr)
	require.Equal(t, lines[0], lines[1])
	require.FileExists(t, lines[0]+"/file")
	_, err = l.Measure(t.Context(), id)
	require.NoError(t, err)

	b, err := l.Get(t.Context(), id)
	require.NoError(t, err)
	require.True(t, b.Alive)
	require.NoError(t, l.Destroy(t.Context(), id))
	require.Empty(t, asleep(t, nap(1000)))
	require.NoDirExists(t, lines[0])
}

func TestTheDeadlineEndsABoxWithoutIsolation(t *testing.T) {
	l := open(t, bare)
	id := create(t, l, online)
	sh(t, l, id, "user", "setsid sleep "+nap(2000)+" > /dev/null 2>&1 < /dev/null &")
	require.Eventually(t, func() bool { return len(asleep(t, nap(2000))) == 1 }, 30*time.Second, time.Millisecond)
	ended, err := l.Ended(id)
	require.NoError(t, err)
	require.NoError(t, l.Extend(t.Context(), id, time.Now()))
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("the box outlived its deadline")
	}
	require.Eventually(t, func() bool { return len(asleep(t, nap(2000))) == 0 }, 30*time.Second, time.Millisecond)
}

// asleep lists our processes that run sleep for this time.
func asleep(t *testing.T, seconds string) []string {
	t.Helper()
	var found []string
	for _, path := range glob(t, "/proc/[0-9]*/cmdline") {
		text, err := os.ReadFile(path)
		if err == nil && string(text) == "sleep\x00"+seconds+"\x00" {
			found = append(found, path)
		}
	}
	return found
}
