//go:build linux

package vercel

import (
	"io"
	"maps"
	"net/http"
	"sync"
)

// Traffic is what one operation cost: its calls, and the bytes of their bodies.
type Traffic struct {
	Calls    int   `json:"calls"`
	Sent     int64 `json:"sent"`     // by the caller
	Received int64 `json:"received"` // by the caller
}

type stats struct {
	mu    sync.Mutex
	calls map[string]Traffic
}

// Traffic returns what was called since the last time, by operation, and forgets it.
func (s *Server) Traffic() map[string]Traffic {
	s.stats.mu.Lock()
	defer s.stats.mu.Unlock()
	seen := maps.Clone(s.stats.calls)
	clear(s.stats.calls)
	return seen
}

// counted is an answer whose bytes are counted.
type counted struct {
	http.ResponseWriter
	stats    *stats
	name     string
	body     *countedBody
	received int64
}

type countedBody struct {
	io.ReadCloser
	n int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n += int64(n)
	return n, err
}

func (s *stats) begin(name string, w http.ResponseWriter, r *http.Request) *counted {
	body := &countedBody{ReadCloser: r.Body}
	r.Body = body
	return &counted{ResponseWriter: w, stats: s, name: name, body: body}
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.received += int64(n)
	return n, err
}

// Unwrap gives the controller what is inside.
func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *counted) done() {
	c.stats.mu.Lock()
	defer c.stats.mu.Unlock()
	seen := c.stats.calls[c.name]
	c.stats.calls[c.name] = Traffic{seen.Calls + 1, seen.Sent + c.body.n, seen.Received + c.received}
}
