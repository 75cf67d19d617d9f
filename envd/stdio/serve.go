// Package stdio carries connections to the daemon over one byte stream, for boxes of which nothing but the
// input and output of a program can be reached: HTTP/2 in which every stream is one connection. Serve is the
// end in the box, Open the facade's.
//
// What is inside a connection is plain HTTP/1.1, so that everything that speaks to a daemon, WebSockets
// included, works over it as over a socket. HTTP/2 gives what many connections on one stream need: a window
// for each, so that one that stalls does not stop the others, and an end for each that tells a break from an
// orderly end.
package stdio

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// routeConnect opens a connection.
	routeConnect = "/connect"
	// window is how many bytes of one connection may lie unread, allWindows how many of all of them: more than
	// connections can fill that stand still.
	window     = 256 << 10
	allWindows = 1 << 30
	// connections is how many there may be at a time.
	connections = 4096
	// chunk is how many bytes are copied at once.
	chunk = 32 << 10
	// quiet is the silence after which the far side is asked whether it is there, answerTime how long it has.
	quiet      = 20 * time.Second
	answerTime = 20 * time.Second
)

// Dial opens a connection to the daemon from within the box.
type Dial func(ctx context.Context) (net.Conn, error)

// Serve answers the facade at the other end of a stream until that ends, or ctx does, and returns when all
// connections have ended. It closes the stream.
func Serve(ctx context.Context, stream io.ReadWriteCloser, dial Dial) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn := newPipe(stream)
	h := &handler{dial: dial, ended: ctx}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: h, Protocols: protocols, HTTP2: &http.HTTP2Config{
		MaxConcurrentStreams: connections, MaxReceiveBufferPerConnection: allWindows, MaxReceiveBufferPerStream: window,
	}}
	// The connection first: the server waits for the listener, which waits for the connection.
	cut := func() { _, _ = conn.Close(), server.Close() }
	defer context.AfterFunc(ctx, cut)()
	err := server.Serve(&once{conn: conn, closed: conn.closed})
	cut()
	cancel()
	h.end()
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// once is a listener to which one connection comes. It ends with that.
type once struct {
	mu     sync.Mutex
	conn   net.Conn
	closed <-chan struct{}
}

// Accept returns the connection, and later waits for its end.
func (l *once) Accept() (net.Conn, error) {
	l.mu.Lock()
	conn := l.conn
	l.conn = nil
	l.mu.Unlock()
	if conn != nil {
		return conn, nil
	}
	<-l.closed
	return nil, io.EOF
}

// Close does nothing: the connection is the server's.
func (l *once) Close() error { return nil }

// Addr is a name for logs.
func (l *once) Addr() net.Addr { return address{} }

// handler carries each stream to a connection of its own.
type handler struct {
	dial  Dial
	ended context.Context

	mu      sync.Mutex
	closed  bool
	carried sync.WaitGroup // raised under mu, and only while not closed
}

// begin says whether a stream may be carried; the caller then tells carried when it is done. net/http may start the
// handler of a stream after the server has been closed.
func (h *handler) begin() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.carried.Add(1)
	}
	return !h.closed
}

// end waits for all streams, after which no other begins.
func (h *handler) end() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.carried.Wait()
}

// ServeHTTP opens a connection and carries it until it ends.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.begin() {
		panic(http.ErrAbortHandler)
	}
	defer h.carried.Done()
	if r.URL.Path != routeConnect {
		http.NotFound(w, r)
		return
	}
	inner, err := h.dial(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = inner.Close() }()
	defer context.AfterFunc(h.ended, func() { _ = inner.Close() })()
	h.carry(w, r, inner)
}

// carry copies both directions. The answer's end is the daemon's; a break of either is a break of the stream.
func (h *handler) carry(w http.ResponseWriter, r *http.Request, inner net.Conn) {
	control := http.NewResponseController(w)
	w.WriteHeader(http.StatusOK)
	_ = control.Flush() // The first write tells when it is broken.
	var in sync.WaitGroup
	in.Go(func() {
		_, err := io.CopyBuffer(writeOnly{inner}, r.Body, make([]byte, chunk))
		half, can := inner.(interface{ CloseWrite() error })
		if err != nil || !can || half.CloseWrite() != nil {
			_ = inner.Close()
		}
	})
	buffer := make([]byte, chunk)
	for {
		n, err := inner.Read(buffer)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil || control.Flush() != nil {
				break
			}
		}
		if errors.Is(err, io.EOF) {
			_ = inner.Close()
			return
		}
		if err != nil {
			break
		}
	}
	panic(http.ErrAbortHandler) // net/http ends the stream by a reset, and the copy with it
}

// writeOnly hides ReadFrom, so that the copy goes through our buffer.
type writeOnly struct{ io.Writer }
