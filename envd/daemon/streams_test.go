package daemon_test

import (
	"bytes"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/envd"
)

// What a stream costs while nothing happens is mostly the stacks of those who wait: net/http's two, and one for each
// pipe of the process.
func TestAnIdleStreamHasFourWaiters(t *testing.T) {
	const streams = 20
	r := run(t, envd.Config{})
	before := runtime.NumGoroutine()
	for range streams {
		conn, err := net.Dial("tcp", strings.TrimPrefix(r.facade, "http://"))
		require.NoError(t, err)
		defer conn.Close()
		message := `{"process":{"cmd":"/bin/sleep","args":["1000"]},"stdin":false}`
		body := string([]byte{0, 0, 0, 0, byte(len(message))}) + message
		_, err = fmt.Fprintf(conn, "POST /process.Process/Start HTTP/1.1\r\nHost: envd\r\nContent-Type: application/connect+json\r\n"+
			"Content-Length: %d\r\n\r\n%s", len(body), body)
		require.NoError(t, err)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
		var said []byte
		for part := make([]byte, 1<<10); !bytes.Contains(said, []byte(`"pid"`)); {
			n, err := conn.Read(part)
			require.NoError(t, err, "after %q", said)
			said = append(said, part[:n]...)
		}
	}
	// The looking itself takes a few.
	require.Eventually(t, func() bool { return runtime.NumGoroutine()-before < 5*streams }, patience, 10*time.Millisecond)
}
