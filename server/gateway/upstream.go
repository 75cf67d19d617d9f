package gateway

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/isthmus/isthmus/envd"
)

// dialError marks an error as one of making the connection: nothing of the request was sent.
type dialError struct{ error }

func (e *dialError) Unwrap() error { return e.error }

// upstreamConn is a connection into a sandbox that tells the exchange which it carries when it ends. The
// transport reads it all the time, so that this is at once.
type upstreamConn struct {
	net.Conn
	carried atomic.Pointer[exchange]
	dead    atomic.Bool // nothing more is read from it
	deaf    atomic.Bool // nothing more is written to it
}

// Read reads, and notes the end.
func (c *upstreamConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.ended()
	}
	return n, err
}

// Write writes. The rest of a body that is not wanted any more is dropped: a program may answer and close its
// connection before it has read everything, and the transport, which takes a failed write for the end of it all,
// would throw that answer away. The reading side knows how the connection ended.
func (c *upstreamConn) Write(p []byte) (int, error) {
	if c.deaf.Load() {
		return len(p), nil
	}
	n, err := c.Conn.Write(p)
	if err != nil && !c.dead.Load() && c.carried.Load() != nil {
		c.deaf.Store(true)
		return len(p), nil
	}
	return n, err
}

// Close closes, and notes the end.
func (c *upstreamConn) Close() error {
	c.ended()
	return c.Conn.Close()
}

// CloseWrite passes the end of one direction on, where the connection has two.
func (c *upstreamConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

func (c *upstreamConn) ended() {
	c.dead.Store(true)
	if x := c.carried.Load(); x != nil {
		x.died(c)
	}
}

// roundTripper sends a request over the connections of its exchange's pool.
type roundTripper struct{}

// RoundTrip sends the request.
func (roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	x := exchangeOf(r)
	if x.hasBody {
		trace := &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) { x.carriedBy(got.Conn) }}
		r = r.WithContext(httptrace.WithClientTrace(r.Context(), trace))
	}
	if x.target.port == envd.Port || x.pool.route.Inner != nil {
		return x.pool.envd.RoundTrip(r)
	}
	if !replayable(r) {
		return x.pool.once.RoundTrip(r)
	}
	return x.pool.ports.RoundTrip(r)
}

// replayable reports whether a request may be sent a second time. An application may close a kept connection at the
// very moment at which a request is sent on it; whether it has acted on that is then not known, so that only a request
// which may come twice can be sent again, and only one without a body that is gone by then.
func replayable(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return r.Body == nil || r.Body == http.NoBody
	}
	return false
}

// carriedBy ties the exchange and the connection that carries it to each other.
func (x *exchange) carriedBy(conn net.Conn) {
	if secured, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secured.NetConn()
	}
	c, ok := conn.(*upstreamConn)
	if !ok {
		return
	}
	x.attach(c)
	c.carried.Store(x)
	if c.dead.Load() { // and nobody was told
		x.died(c)
	}
}
