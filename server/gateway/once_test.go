package gateway_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/envd/tunnel"
)

// TestAKeptConnectionThatCloses has an application that closes each kept connection at the moment at which a second
// request comes on it. What can be sent again is, and what cannot never meets such a connection.
func TestAKeptConnectionThatCloses(t *testing.T) {
	port, seen := forgetful(t)
	ends := tunnel.NewHandler()
	l := newLab(t, ends.ServeHTTP)
	l.tunnel = true
	for _, c := range l.clients() {
		t.Run(c.name, func(t *testing.T) {
			for range 3 {
				for _, method := range []string{"GET", "POST", "DELETE", "PUT", "PATCH"} {
					answer, body := l.do(c, l.request(c, "GET", "/", port, nil))
					require.Equal(t, http.StatusOK, answer.StatusCode, body)
					require.Equal(t, "ok", body)
					var streamed io.Reader
					if method != "GET" && method != "DELETE" {
						streamed = struct{ io.Reader }{strings.NewReader("a body of no known length")}
					}
					answer, body = l.do(c, l.request(c, method, "/", port, streamed))
					require.Equal(t, http.StatusOK, answer.StatusCode, "%s: %s", method, body)
				}
			}
		})
	}
	require.Zero(t, seen.Load(), "no request that may not come twice was sent on a kept connection")
}

// forgetful starts a program that answers one request of each connection, keeps it, and closes it without an answer
// when the next one comes. It returns its port, and how many of those were not to be sent again.
func forgetful(t *testing.T) (string, *atomic.Int64) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	seen := &atomic.Int64{}
	serve := func(conn net.Conn) {
		defer conn.Close()
		in := bufio.NewReader(conn)
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		if second, err := http.ReadRequest(in); err == nil && second.Method != "GET" {
			seen.Add(1)
		}
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port), seen
}
