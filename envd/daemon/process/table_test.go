package process

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	wire "github.com/isthmus/isthmus/envd/process"
)

func TestAnExitIsKeptForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := newTable()
		defer tb.close()
		selector := func(pid uint32) *wire.ProcessSelector {
			return &wire.ProcessSelector{Selector: &wire.ProcessSelector_Pid{Pid: pid}}
		}
		tagged := &wire.ProcessSelector{Selector: &wire.ProcessSelector_Tag{Tag: "t"}}
		known := func(s *wire.ProcessSelector) bool {
			_, e, err := tb.findRecent(s)
			return err == nil && e != nil
		}
		tb.keepExit(1, new("t"), endOf(0))
		tb.keepExit(2, nil, endOf(0))
		time.Sleep(retention - time.Second)
		require.True(t, known(selector(1)))
		require.True(t, known(tagged))
		_, err := tb.find(selector(1))
		require.Error(t, err, "for those who connect only")

		old := &running{pid: 2}
		tb.add(old)
		tb.end(old, endOf(0))
		time.Sleep(2 * time.Second)
		require.False(t, known(selector(1)))
		require.False(t, known(tagged))
		require.True(t, known(selector(2)), "the newer exit of the same pid has its own time")

		tb.keepExit(3, new("t"), endOf(0))
		tb.add(&running{pid: 4, tag: new("t")})
		require.False(t, known(selector(3)), "a new process of the same tag drops the exit")
		tb.add(&running{pid: 2})
		require.False(t, known(selector(2)), "as does one of the same pid")
		tb.end(old, endOf(0))
		r, err := tb.find(selector(2))
		require.NoError(t, err)
		require.NotSame(t, old, r, "the end of the old one does not touch the new one")
	})
}

func TestTheOldestExitsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := newTable()
		defer tb.close()
		known := func(s *wire.ProcessSelector) bool {
			_, e, err := tb.findRecent(s)
			return err == nil && e != nil
		}
		pid := func(pid uint32) *wire.ProcessSelector {
			return &wire.ProcessSelector{Selector: &wire.ProcessSelector_Pid{Pid: pid}}
		}
		holds := func() (exits, aged, kept int) {
			tb.mu.Lock()
			defer tb.mu.Unlock()
			return len(tb.exits), tb.byAge.Len(), tb.kept
		}
		const many = 100_000
		for n := range uint32(many) {
			tb.keepExit(n, nil, endOf(0))
		}
		exits, _, _ := holds()
		require.LessOrEqual(t, exits*exitSize, maxKept)
		require.True(t, known(pid(many-1)))
		require.True(t, known(pid(many-1000)), "the newest thousand are there")
		require.False(t, known(pid(0)), "the oldest is not")

		long := strings.Repeat("t", maxKept)
		tb.keepExit(many, &long, endOf(0))
		require.True(t, known(&wire.ProcessSelector{Selector: &wire.ProcessSelector_Tag{Tag: long}}))
		exits, _, _ = holds()
		require.Equal(t, 1, exits, "tags count too")
		time.Sleep(retention + time.Second)
		exits, aged, kept := holds()
		require.Equal(t, [3]int{}, [3]int{exits, aged, kept})
	})
}
