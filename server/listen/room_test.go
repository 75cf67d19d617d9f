package listen

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// crowded serves with room for four connections; /wait answers when release is closed.
func crowded(t *testing.T) (address string, release chan struct{}) {
	t.Helper()
	release = make(chan struct{})
	entered := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-release
		}
		_, _ = io.WriteString(w, "hello")
	})
	s, err := New(Config{Handler: entered, Grace: time.Second, Connections: 4, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return listener.Addr().String(), release
}

// say opens a connection and says something on it.
func say(t *testing.T, address, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
	_, err = io.WriteString(conn, text)
	require.NoError(t, err)
	return conn
}

const get = "GET /%s HTTP/1.1\r\nHost: x\r\n\r\n"

// answered reads the head of an answer.
func answered(t *testing.T, conn net.Conn) *http.Response {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode)
	return response
}

// A flood of connections that say nothing, or never end what they say, locks nobody out.
func TestAFloodOfConnectionsLocksNobodyOut(t *testing.T) {
	address, release := crowded(t)
	defer close(release)
	working := say(t, address, fmt.Sprintf(get, "wait"))
	answered(t, working)
	for i := range 200 {
		say(t, address, []string{"", "GET / HT"}[i%2])
		if i%50 == 0 {
			answered(t, say(t, address, fmt.Sprintf(get, "")))
		}
	}
	answered(t, say(t, address, fmt.Sprintf(get, "")))
	require.NoError(t, working.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := working.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "a request that is being answered keeps its connection")
}

// With all of them at work there is no room, and there is again as soon as one has its answer.
func TestWorkIsNotBrokenOffForAnother(t *testing.T) {
	address, release := crowded(t)
	var working []*http.Response
	for range 4 {
		working = append(working, answered(t, say(t, address, fmt.Sprintf(get, "wait"))))
	}
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	require.NoError(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
	_, err = conn.Read(make([]byte, 1))
	require.Error(t, err, "a fifth is closed")
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	close(release)
	for _, response := range working {
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.Equal(t, "hello", string(text))
	}
	answered(t, say(t, address, fmt.Sprintf(get, "")))
}
