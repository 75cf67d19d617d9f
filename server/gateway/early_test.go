package gateway_test

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/envd/tunnel"
)

// TestAnEarlyAnswerOutlivesItsConnection sends bodies that a program does not want: it answers after the first
// bytes and closes its connection, which its kernel then resets. The answer comes, and so does the next one.
func TestAnEarlyAnswerOutlivesItsConnection(t *testing.T) {
	port := strconv.Itoa(hasty(t))
	ends := tunnel.NewHandler()
	l := newLab(t, ends.ServeHTTP)
	l.tunnel = true
	unwanted := strings.Repeat("x", 300_000)
	tries := 40
	if testing.Short() {
		tries = 5
	}
	for _, c := range l.clients() {
		t.Run(c.name, func(t *testing.T) {
			for range tries {
				answer, body := l.do(c, l.request(c, "POST", "/", port, strings.NewReader(unwanted)))
				require.Equal(t, http.StatusRequestEntityTooLarge, answer.StatusCode, body)
				require.Equal(t, "big", body)
				answer, _ = l.do(c, l.request(c, "GET", "/", port, nil))
				require.Equal(t, http.StatusRequestEntityTooLarge, answer.StatusCode)
			}
		})
	}
}

// hasty starts a program that reads a little of each request, refuses it and closes; it returns its port.
func hasty(t *testing.T) int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1000))
			_, _ = io.WriteString(conn, "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 3\r\n\r\nbig")
			_ = conn.Close()
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port
}
