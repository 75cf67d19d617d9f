package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNothingIsSmuggledBehindAnEarlyAnswer sends a body that looks like a request, and the backend answers
// before it was read. A gateway that goes on reading requests there would serve it.
func TestNothingIsSmuggledBehindAnEarlyAnswer(t *testing.T) {
	var smuggled atomic.Int64
	l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
		early(w)
		switch r.URL.Path {
		case "/smuggled":
			smuggled.Add(1)
		case "/first-bytes":
			_, _ = io.ReadFull(r.Body, make([]byte, 5))
		case "/stream":
			_, _ = io.WriteString(w, "a")
			_ = http.NewResponseController(w).Flush()
		case "/header":
			w.Header().Set("Content-Length", "5")
		}
		_, _ = io.WriteString(w, "early")
	})
	inner := "GET /smuggled HTTP/1.1\r\n" + toEnvd + "\r\n"
	chunked := func(path string) string {
		return "POST " + path + " HTTP/1.1\r\n" + toEnvd + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
	}
	sized := func(path string) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\n%sContent-Length: %d\r\n\r\nhello", path, toEnvd, 5+len(inner))
	}
	chunk := fmt.Sprintf("%x\r\n", len(inner))
	tests := []struct{ name, first, then string }{
		{"open chunk", chunked("/unread") + chunk, inner},
		{"next chunk, first bytes read", chunked("/first-bytes"), chunk + inner},
		{"open chunk, stream", chunked("/stream") + chunk, inner},
		{"open chunk, known length", chunked("/header") + chunk, inner},
		{"next chunk", chunked("/unread"), chunk + inner},
		{"ended chunks and a pipelined request", chunked("/unread"), "0\r\n\r\n" + inner},
		{"length", sized("/unread"), inner},
		{"length, first bytes read", sized("/first-bytes"), inner},
		{"length, stream", sized("/stream"), inner},
		{"all at once", chunked("/unread") + chunk + inner, ""},
		{"refused by the gateway", strings.Replace(chunked("/init"), "/init", "/freeze", 1) + chunk, inner},
		{"refused for its port", strings.Replace(chunked("/x"), "49983", "81", 1) + chunk, inner},
	}
	tries := 25 // of each: 300 in all
	if testing.Short() {
		tries = 3
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for range tries {
				conn := l.raw(test.first)
				in := bufio.NewReader(conn)
				answer, err := http.ReadResponse(in, nil)
				require.NoError(t, err)
				_, err = io.Copy(io.Discard, answer.Body)
				require.NoError(t, err)
				require.True(t, answer.Close, "the connection stays open")
				// The connection may be gone already: that is what is wanted.
				_, _ = io.WriteString(conn, test.then+inner)
				_, err = http.ReadResponse(in, nil)
				require.Error(t, err, "a second answer")
				_ = conn.Close()
			}
		})
	}
	require.Zero(t, smuggled.Load())
}

func readAnswer(t *testing.T, conn io.Reader) *http.Response {
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	return answer
}

// early keeps net/http in the backend from reading the body before it answers.
func early(w http.ResponseWriter) { _ = http.NewResponseController(w).EnableFullDuplex() }

// TestConnectionIsKeptAfterAWholeBody: closing is for early answers only.
func TestConnectionIsKeptAfterAWholeBody(t *testing.T) {
	l := newLab(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	post := "POST / HTTP/1.1\r\n" + toEnvd
	conn := l.raw("")
	in := bufio.NewReader(conn)
	for i := range 200 {
		text := post + "Content-Length: 2\r\n\r\nok"
		if i%2 == 1 {
			text = post + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
		}
		_, err := io.WriteString(conn, text)
		require.NoError(t, err)
		answer, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.Equal(t, "ok", string(body))
		require.False(t, answer.Close)
	}
}

func TestEarlyAnswerToAStalledUploadComesAtOnce(t *testing.T) {
	l := newLab(t, func(w http.ResponseWriter, _ *http.Request) {
		early(w)
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, "no")
	})
	tests := []struct {
		name, text string
		status     int
	}{
		{"by the daemon", "POST /files HTTP/1.1\r\n" + toEnvd, 401},
		{"internal route", "POST /init HTTP/1.1\r\n" + toEnvd, 404},
		{"no such sandbox", "POST /files HTTP/1.1\r\n" + strings.Replace(toEnvd, sandboxID, "iother", 1), 502},
		{"closed port", "POST /files HTTP/1.1\r\n" + strings.Replace(toEnvd, "49983", "81", 1), 502},
	}
	for _, test := range tests {
		for _, length := range []string{"Content-Length: 1000000", "Content-Length: 20", "Transfer-Encoding: chunked"} {
			t.Run(test.name+", "+length, func(t *testing.T) {
				conn := l.raw(test.text + length + "\r\n\r\n5\r\nhello\r\n")
				answer := readAnswer(t, conn)
				require.Equal(t, test.status, answer.StatusCode)
				require.True(t, answer.Close)
				_, err := io.Copy(io.Discard, answer.Body)
				require.NoError(t, err)
				_, err = conn.Read(make([]byte, 1))
				require.Error(t, err, "the connection is closed soon")
			})
		}
	}
}

func TestOddFraming(t *testing.T) {
	var served atomic.Int64
	l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		_, _ = io.Copy(w, r.Body)
	})
	post := "POST / HTTP/1.1\r\n" + toEnvd
	tests := []struct {
		name, text string
		status     int
		served     bool
	}{
		{"id twice", post + "E2b-Sandbox-Id: iother\r\n\r\n", 400, false},
		{"same id twice, other case", post + "e2b-sandbox-id: " + sandboxID + "\r\n\r\n", 400, false},
		{"port twice", post + "E2b-Sandbox-Port: 22\r\n\r\n", 400, false},
		{"two hosts", post + "Host: other\r\n\r\n", 400, false},
		{"unknown coding", post + "Transfer-Encoding: gzip, chunked\r\n\r\n", 501, false},
		{"identity", post + "Transfer-Encoding: identity\r\n\r\n", 501, false},
		{"two codings", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 501, false},
		{"coding with a tab", post + "Transfer-Encoding: \tchunked\r\n\r\n0\r\n\r\n", 200, true},
		{"space before the colon", post + "Content-Length : 5\r\n\r\nhello", 400, false},
		{"two lengths", post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400, false},
		{"negative length", post + "Content-Length: -1\r\n\r\n", 400, false},
		{"length with a sign", post + "Content-Length: +5\r\n\r\nhello", 400, false},
		{"bad chunk length", post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400, false},
		{"folded header", post + "X-A: b\r\n c\r\n\r\n", 0, false},
		{"line feed in a name", post + "X\nE2b: b\r\n\r\n", 400, false},
		{"upgrade with a body", post + "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 5\r\n\r\nhello", 200, true},
		{"upgrade to h2c", post + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n", 200, true},
		{"CONNECT", "CONNECT localhost:80 HTTP/1.1\r\n" + toEnvd + "\r\n", 405, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := served.Load()
			answer := readAnswer(t, l.raw(test.text))
			if test.status != 0 {
				require.Equal(t, test.status, answer.StatusCode)
				require.Equal(t, test.served, served.Load() > before && answer.StatusCode == 200)
			}
		})
	}
}
