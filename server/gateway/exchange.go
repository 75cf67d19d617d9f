package gateway

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// lingerFor is how long a connection that is about to close still takes in what the client is sending, so that
// the client reads the answer before it learns that the connection is closed.
const lingerFor = 500 * time.Millisecond

var (
	errUpstreamDied = errors.New("the connection to the sandbox ended before the request was sent")
	errEnded        = errors.New("the exchange has ended")
)

// exchange is one request and its answer, seen from both connections. It keeps three promises.
//
// No answer is truncated: over HTTP/1.1 net/http is told not to touch the request's body when the answer begins.
//
// No request is smuggled: net/http would then parse what is left of a body behind an early answer as the next
// request. So an answer that begins before the body's end closes the connection (begin, failed), the body is
// never read past its end, and never after the handler has returned (end).
//
// Nothing hangs: when the sandbox's connection dies, or the sandbox ends, while the client's upload stalls or
// its download is not read, the pending read or write is interrupted.
//
// Deadlines are set under mu and never after end, because the connection then belongs to the next request.
type exchange struct {
	target  target
	pool    *pool
	client  context.Context // of the inbound request: ends when the client goes away
	ctx     context.Context // of the outbound request: ends with client, or by cancel
	cancel  context.CancelFunc
	control *http.ResponseController
	http1   bool
	hasBody bool

	mu          sync.Mutex
	readEnded   sync.Cond
	upstream    *upstreamConn // the connection that carries the request now
	dead        bool          // that connection has died
	reading     bool          // the body is being read
	interrupted bool          // and a deadline was set to stop that
	bodyErr     error         // why the body ended: io.EOF, or what the client did
	begun       bool          // the answer's header is on its way
	aborted     bool          // the sandbox ended
	ended       bool          // the handler is returning
	hijacked    bool          // the client's connection carries another protocol
}

func newExchange(w http.ResponseWriter, r *http.Request, target target, pool *pool) *exchange {
	x := &exchange{
		target:  target,
		pool:    pool,
		client:  r.Context(),
		control: http.NewResponseController(w),
		http1:   r.ProtoMajor == 1,
		hasBody: r.ContentLength != 0,
	}
	x.readEnded.L = &x.mu
	x.ctx, x.cancel = context.WithCancel(context.WithValue(r.Context(), exchangeKey{}, x))
	return x
}

type exchangeKey struct{}

// exchangeOf returns the exchange of a request that forward made.
func exchangeOf(r *http.Request) *exchange {
	return r.Context().Value(exchangeKey{}).(*exchange)
}

// attach notes which connection carries the request. A request of which nothing was read yet may come by with
// a second one, when the first had been closed while it was idle.
func (x *exchange) attach(conn *upstreamConn) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.upstream, x.dead = conn, false
}

// died is told that a connection has ended. Before the answer has begun nothing can be made of the rest of the
// body any more, and the transport waits for a pending read of it: it is interrupted. Later the answer may be
// complete already, so that the client's side is left alone until end.
func (x *exchange) died(conn *upstreamConn) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.upstream != conn {
		return
	}
	x.dead = true
	if !x.begun {
		x.interrupt()
	}
}

// abort breaks everything off, because the sandbox ended. An answer that has begun is broken, never ended.
func (x *exchange) abort() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended || x.aborted {
		return
	}
	x.aborted = true
	x.cancel()
	if x.begun && !x.hijacked {
		_ = x.control.SetWriteDeadline(time.Unix(1, 0))
	}
	x.interrupt()
}

// begin notes that the answer is about to be written, and reports whether it still may be. Until the body was
// read to its end, the connection must close behind the answer.
func (x *exchange) begin(answer http.Header) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.aborted {
		return false
	}
	x.begun = true
	x.closeBehind(answer)
	return true
}

// blame says whose fault it is that there is no answer.
type blame int

const (
	ofUpstream blame = iota
	ofSandboxEnd
	ofClientGone
	ofClientBody
)

// fail notes that an error of our own is about to be written instead of an answer, and says whose fault that
// is. An interrupted read looks to net/http as if the client had gone, so that it is asked last.
func (x *exchange) fail(answer http.Header) blame {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closeBehind(answer)
	switch {
	case x.aborted || x.pool.ctx.Err() != nil:
		return ofSandboxEnd
	case x.interrupted:
		return ofUpstream
	case x.client.Err() != nil:
		return ofClientGone
	case x.bodyErr != nil && !x.atEOF():
		return ofClientBody
	}
	return ofUpstream
}

// closeBehind makes net/http close the connection after the answer when the body has not ended. Only HTTP/1 has
// the problem; over HTTP/2 the header would end the whole connection.
func (x *exchange) closeBehind(answer http.Header) {
	if x.http1 && x.hasBody && (!x.atEOF() || x.interrupted) {
		answer.Set("Connection", "close")
	}
}

// end is called when the handler returns: it stops a pending read, which would otherwise eat from what follows,
// and leaves the client a moment to read the answer.
func (x *exchange) end() {
	x.cancel()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended = true
	if x.upstream != nil {
		x.upstream.carried.CompareAndSwap(x, nil)
	}
	if x.hijacked || !x.hasBody {
		return
	}
	x.interrupt()
	for x.reading && x.interrupted {
		x.readEnded.Wait()
	}
	if x.http1 && !x.atEOF() {
		_ = x.control.SetReadDeadline(time.Now().Add(lingerFor))
	}
}

// interrupt makes a pending read of the body return. The caller holds mu.
func (x *exchange) interrupt() {
	if x.reading && !x.interrupted {
		x.interrupted = x.control.SetReadDeadline(time.Unix(1, 0)) == nil
	}
}
