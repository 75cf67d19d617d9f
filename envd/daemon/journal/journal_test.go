package journal

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestTheRingKeepsTheLast(t *testing.T) {
	j := New()
	require.Equal(t, 0, len(j.After(0)))
	require.NotNil(t, j.After(0))
	for range capacity + 10 {
		j.Info("event")
	}
	all := j.After(0)
	require.Len(t, all, capacity)
	require.EqualValues(t, 11, all[0].Number, "a gap in the numbers tells that entries are lost")
	require.EqualValues(t, capacity+10, all[capacity-1].Number)
	last := j.After(capacity + 8)
	require.Len(t, last, 2)
	require.EqualValues(t, capacity+9, last[0].Number)
	require.Empty(t, j.After(capacity+10))
	require.Empty(t, j.After(1<<63))
}

func TestEntriesAreBounded(t *testing.T) {
	j := New()
	j.Warn("a", "cmd", strings.Repeat("ü", 500), "bad", "\xff\xfe", "odd")
	e := j.After(0)[0]
	require.Equal(t, "warn", e.Level)
	require.LessOrEqual(t, len(e.Fields["cmd"]), maxField+3)
	require.True(t, utf8.ValidString(e.Fields["cmd"]))
	require.True(t, utf8.ValidString(e.Fields["bad"]))
	require.Len(t, e.Fields, 2)
	require.False(t, e.Time.IsZero())
}
