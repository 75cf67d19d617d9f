package gateway_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkGateway compares the gateway with a bare reverse proxy of the standard library over the same
// backend, and both with no proxy at all, in one run: go test -bench Gateway -benchtime 2s.
func BenchmarkGateway(b *testing.B) {
	const size = 64 << 20
	content := make([]byte, size)
	_, _ = rand.Read(content)
	l := newLab(b, func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet:
			w.Header().Set("Content-Type", "application/octet-stream")
			_, _ = w.Write(content)
		case http.MethodPut:
			_, _ = io.Copy(io.Discard, r.Body)
		default:
			_, _ = io.Copy(w, r.Body)
		}
	})
	bare := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) { p.Out.URL.Scheme, p.Out.URL.Host = "http", "envd" },
		Transport: &http.Transport{
			MaxIdleConnsPerHost: 128, DisableCompression: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return l.envd.dial(ctx) },
		},
	})
	b.Cleanup(bare.Close)
	direct := &http.Client{Transport: &http.Transport{
		DisableCompression: true,
		DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return l.envd.dial(ctx) },
	}}
	small := bytes.Repeat([]byte("x"), 200)
	calls := []struct {
		name, method, path string
		body               []byte
		size               int64
	}{{"call", "POST", "/process.Process/List", small, 0}, {"download", "GET", "/", nil, size}, {"upload", "PUT", "/", content, size}}
	ways := []struct {
		name string
		client
	}{
		{"direct", client{direct, "h1", "http://envd"}},
		{"bare", l.over("h1", bare)},
		{"gateway h1", l.http1()},
		{"gateway h2c", l.over("h2c", l.plain)},
		{"gateway h2", l.over("h2", l.secure)},
	}
	for _, call := range calls {
		for _, way := range ways {
			b.Run(call.name+"/"+way.name, func(b *testing.B) {
				b.SetBytes(call.size)
				for b.Loop() {
					request := l.request(way.client, call.method, call.path, envdPort, bytes.NewReader(call.body))
					request.Header.Set("Content-Type", "application/json") // of a call to the daemon
					answer, err := way.Do(request)
					require.NoError(b, err)
					_, err = io.Copy(io.Discard, answer.Body)
					require.NoError(b, err)
					require.NoError(b, answer.Body.Close())
				}
			})
		}
	}
}
