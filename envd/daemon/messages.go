package daemon

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sync/semaphore"
	"google.golang.org/protobuf/proto"
)

const (
	// maxMessage bounds one message of a call, in bytes, as it is sent and once it is decompressed.
	maxMessage = 64 << 20
	// bigMessage is from where on a message waits for its turn: reading one takes several times its size.
	bigMessage = 1 << 20
	// maxKept bounds the big messages that calls work with, in bytes, together.
	maxKept = 2 * maxMessage
	// wasteful is the size of a message after which memory is given back at once, in bytes.
	wasteful = 8 << 20
	// bigIdle bounds how long a client may send nothing while others wait for it.
	bigIdle = 30 * time.Second
)

// messages keeps big messages from taking the memory of the box together: one is read at a time.
type messages struct {
	reading chan struct{}
	kept    *semaphore.Weighted
}

func newMessages() *messages {
	return &messages{reading: make(chan struct{}, 1), kept: semaphore.NewWeighted(maxKept)}
}

// guard bounds the messages of a handler's calls.
func (m *messages) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := &turn{messages: m, body: r.Body, control: http.NewResponseController(w), compressed: compressed(r.Header)}
		r = r.WithContext(context.WithValue(r.Context(), turnKey{}, t))
		t.ctx, r.Body = r.Context(), t
		defer t.end()
		next.ServeHTTP(w, r)
	})
}

func compressed(h http.Header) bool {
	for _, name := range []string{"Content-Encoding", "Connect-Content-Encoding", "Grpc-Encoding"} {
		if value := h.Get(name); value != "" && value != "identity" {
			return true
		}
	}
	return false
}

type turnKey struct{}

// turn is the body of one call. It is for the call's own goroutine alone.
type turn struct {
	*messages
	ctx        context.Context
	body       io.ReadCloser
	control    *http.ResponseController
	compressed bool

	ended   bool  // the body was read to its end, and closed
	read    int64 // bytes of the present message
	has     bool  // it is this call's turn to read a big one
	kept    int64 // what of messages.kept is this call's
	largest int64
}

// Read reads on. It waits for its turn once the message turns out to be big, or may become so.
func (t *turn) Read(p []byte) (int, error) {
	if t.ended {
		return 0, io.EOF
	}
	if !t.has && (t.compressed || t.read >= bigMessage) {
		select {
		case t.reading <- struct{}{}:
			t.has = true
		case <-t.ctx.Done():
			return 0, t.ctx.Err()
		}
	}
	if t.has {
		_ = t.control.SetReadDeadline(time.Now().Add(bigIdle)) // not every connection has one
	}
	n, err := t.body.Read(p)
	if t.read += int64(n); t.read > maxMessage {
		return n, t.refuse()
	}
	if err == io.EOF {
		// net/http looks for more of a body that is open when the answer begins, and takes a large stack for that.
		t.ended = true
		_ = t.body.Close()
	}
	return n, err
}

// refuse reads what is left, so that the client, which sends before it listens, gets the answer.
func (t *turn) refuse() error {
	t.pass()
	rest, err := io.Copy(io.Discard, t.body)
	if err != nil {
		return err
	}
	return tooLarge(fmt.Sprintf("message size %d is larger than the %d bytes that one message may have", t.read+rest, maxMessage))
}

// tooLarge is the client's fault and no limit on its rate, which clients would take resource_exhausted for.
func tooLarge(text string) error {
	return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("%s: write large data as files, or in pieces", text))
}

// Close closes the body.
func (t *turn) Close() error { return t.body.Close() }

// received ends the reading of a message. The call may keep it until the next one.
func (t *turn) received(message any) error {
	t.drop()
	size := t.read
	if m, ok := message.(proto.Message); ok {
		size = max(size, int64(proto.Size(m)))
	}
	t.largest = max(t.largest, size)
	var err error
	if size > bigMessage {
		if err = t.messages.kept.Acquire(t.ctx, min(size, maxKept)); err == nil {
			t.kept = min(size, maxKept)
		}
	}
	t.read = 0
	t.pass()
	return err
}

// pass lets the next one read.
func (t *turn) pass() {
	if !t.has {
		return
	}
	t.has = false
	_ = t.control.SetReadDeadline(time.Time{})
	<-t.reading
}

func (t *turn) drop() {
	t.messages.kept.Release(t.kept)
	t.kept = 0
}

// end gives back what the call had.
func (t *turn) end() {
	refused := t.compressed && t.read > 0 // it was not received, and nobody knows how much came out of it
	large := refused || max(t.largest, t.read) >= wasteful
	t.pass()
	t.drop()
	if large {
		debug.FreeOSMemory()
	}
}

// turns is the interceptor that tells turns that a message was received.
type turns struct{}

// WrapUnary implements connect.Interceptor.
func (turns) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		if t, ok := ctx.Value(turnKey{}).(*turn); ok {
			if err := t.received(r.Any()); err != nil {
				return nil, err
			}
		}
		return next(ctx, r)
	}
}

// WrapStreamingClient implements connect.Interceptor.
func (turns) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler implements connect.Interceptor.
func (turns) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		t, ok := ctx.Value(turnKey{}).(*turn)
		if !ok {
			return next(ctx, conn)
		}
		return next(ctx, turnConn{conn, t})
	}
}

type turnConn struct {
	connect.StreamingHandlerConn
	turn *turn
}

// Receive receives the next message.
func (c turnConn) Receive(message any) error {
	if err := c.StreamingHandlerConn.Receive(message); err != nil {
		c.turn.pass()
		return err
	}
	return c.turn.received(message)
}
