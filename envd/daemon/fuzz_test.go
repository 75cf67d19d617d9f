package daemon_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/envd/daemon"
)

// FuzzEnvelopes sends whatever calls itself a Connect stream, or a message, to calls that do nothing to this machine.
// Every one is answered: a stream ends with an end frame that is JSON, and nothing is a fault of the server's.
func FuzzEnvelopes(f *testing.F) {
	frame := func(flags byte, text string) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(text))), text...)
	}
	const input, list = "/process.Process/StreamInput", "/process.Process/List"
	f.Add(input, "application/connect+json", frame(0, `{"start":{"process":{"pid":4000000000}}}`))
	f.Add(input, "application/connect+json", append(frame(0, `{"keepalive":{}}`), frame(2, `{}`)...))
	f.Add(input, "application/connect+proto", frame(1, "\x1f\x8b"))
	f.Add(input, "application/connect+json", []byte{0, 0xff, 0xff, 0xff, 0xff})
	f.Add(input, "application/connect+json", []byte{0, 0, 0})
	f.Add(list, "application/json", []byte(`{}`))
	f.Add(list, "application/proto", []byte{8})
	f.Add(list, "text/plain", []byte(`{}`))
	where := served(f)
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	f.Cleanup(client.CloseIdleConnections)
	f.Fuzz(func(t *testing.T, call, contentType string, body []byte) {
		if call != input {
			call = list // any other might start or remove something
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, where+call, strings.NewReader(string(body)))
		require.NoError(t, err)
		request.Header["Content-Type"] = []string{strings.Map(visible, contentType)}
		answer, err := client.Do(request)
		require.NoError(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		for _, fault := range []string{"panic", "runtime error", "nil pointer"} {
			require.NotContains(t, string(text), fault)
		}
		if strings.HasPrefix(answer.Header.Get("Content-Type"), "application/connect+") {
			require.Equal(t, http.StatusOK, answer.StatusCode)
			endsWell(t, text)
			return
		}
		require.Less(t, answer.StatusCode, 500, "%s", text)
	})
}

// visible keeps what may stand in a header.
func visible(r rune) rune {
	if r < ' ' || r > '~' {
		return -1
	}
	return r
}

// endsWell reads the frames of an answer: the last one, and only it, is the end, which is JSON.
func endsWell(t *testing.T, text []byte) {
	t.Helper()
	for len(text) > 0 {
		require.GreaterOrEqual(t, len(text), 5)
		flags, size := text[0], int(binary.BigEndian.Uint32(text[1:5]))
		require.GreaterOrEqual(t, len(text)-5, size)
		message := text[5 : 5+size]
		if text = text[5+size:]; flags&2 != 0 {
			require.Empty(t, text)
			require.True(t, json.Valid(message), "%q", message)
			return
		}
	}
	t.Error("the stream has no end frame")
}

// served is a daemon for fuzzing, which works in folders of its own.
func served(f *testing.F) string {
	f.Helper()
	d, err := daemon.New(envd.Config{DefaultUser: "root"}, daemon.Options{StateDir: f.TempDir()})
	require.NoError(f, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(f, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = d.Serve(ctx, l, nil)
	}()
	f.Cleanup(func() {
		cancel()
		<-ended
	})
	return "http://" + l.Addr().String()
}
