package images

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHeartbeatSpeaksOnlyInSilence(t *testing.T) {
	var out bytes.Buffer
	h, stop := beat(&out, time.Hour)
	_, err := h.Write([]byte("a line\n"))
	require.NoError(t, err)
	h.speak(time.Now(), time.Second, time.Hour)
	require.Equal(t, "a line\n", out.String())
	h.speak(time.Now().Add(2*time.Hour), 90*time.Second, time.Hour)
	stop()
	require.Equal(t, "a line\n... still building the image, 1m30s so far\n", out.String())
}
