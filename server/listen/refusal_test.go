package listen

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What no handler ever sees is answered in JSON too.
func TestUnparsableRequestsAreRefusedInJSON(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s, err := New(Config{Handler: http.NotFoundHandler(), Grace: time.Second, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, listener) }()
	defer func() { cancel(); require.NoError(t, <-done) }()

	for name, row := range map[string]struct {
		request string
		code    int
	}{
		"escape":          {"GET /sandboxes/%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400},
		"no host":         {"GET / HTTP/1.1\r\n\r\n", 400},
		"two hosts":       {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
		"header name":     {"GET / HTTP/1.1\r\nHost: a\r\nb c: d\r\n\r\n", 400},
		"transfer coding": {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: what\r\n\r\n", 501},
		"version":         {"GET / HTTP/9.9\r\nHost: a\r\n\r\n", 505},
		"large headers":   {"GET / HTTP/1.1\r\nHost: a\r\nx: " + strings.Repeat("x", 2<<20) + "\r\n\r\n", 431},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", listener.Addr().String())
			require.NoError(t, err)
			defer conn.Close()
			go func() { _, _ = io.WriteString(conn, row.request) }()
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			defer answer.Body.Close()
			require.Equal(t, row.code, answer.StatusCode)
			require.Equal(t, "application/json", answer.Header.Get("Content-Type"))
			var body struct {
				Code    int
				Message string
			}
			require.NoError(t, json.NewDecoder(answer.Body).Decode(&body))
			require.Equal(t, row.code, body.Code)
			require.NotEmpty(t, body.Message)
		})
	}
}

func TestOtherWritesAreNoRefusals(t *testing.T) {
	for _, p := range []string{
		"", "HTTP/1.1 ", "HTTP/1.1 200 OK\r\nDate: now\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n",
		fmt.Sprintf("HTTP/1.1 x\r\n%s", refusalHeaders), "just bytes\r\n" + refusalHeaders,
	} {
		_, ok := refusal([]byte(p))
		require.False(t, ok, "%q", p)
	}
}
