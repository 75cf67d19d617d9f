package placement

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDurationsOfRecordsAreMilliseconds(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0", time.Nanosecond: "1", 1500 * time.Microsecond: "2", 2 * time.Second: "2000"} {
		text, err := json.Marshal(Milliseconds(d))
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
	text, err := json.Marshal(Live{StartP50: Milliseconds(812 * time.Millisecond)})
	require.NoError(t, err)
	require.JSONEq(t, `{"successRate":0,"creates":0,"startP50Ms":812,"sandboxes":0,"starting":0}`, string(text))
	var live Live
	require.NoError(t, json.Unmarshal(text, &live))
	require.Equal(t, Milliseconds(812*time.Millisecond), live.StartP50)
	require.Error(t, json.Unmarshal([]byte(`{"startP50Ms":"1s"}`), &live))
}
