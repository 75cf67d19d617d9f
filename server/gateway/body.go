package gateway

import (
	"bytes"
	"errors"
	"io"
)

// guardedBody is the body of the inbound request. It remembers its end and is not read past it, nor after the
// exchange or the connection to the sandbox has ended.
type guardedBody struct {
	exchange *exchange
	body     io.ReadCloser
}

// Read reads from the client.
func (b guardedBody) Read(p []byte) (int, error) {
	if err := b.exchange.beginRead(); err != nil {
		return 0, err
	}
	n, err := b.body.Read(p)
	b.exchange.endRead(err)
	return n, err
}

// Close does nothing: net/http closes the inbound body itself.
func (b guardedBody) Close() error { return nil }

// smallBody is up to which size the message of a call is read whole before it is passed on, in bytes.
const smallBody = 16 << 10

// readAhead reads a message of a known, small size. It then goes to the sandbox in one piece with its header, and
// nothing of the client's connection is left to be guarded. What breaks off is passed on as far as it came, with
// its error behind it.
func (x *exchange) readAhead(body guardedBody, size int64) io.ReadCloser {
	message := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	if _, err := message.ReadFrom(body); err != nil {
		return struct {
			io.Reader
			io.Closer
		}{io.MultiReader(message, body), body}
	}
	x.hasBody = false
	return io.NopCloser(bytes.NewReader(message.Bytes()))
}

// beginRead admits a read of the body, or says why there is none any more.
func (x *exchange) beginRead() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.bodyErr != nil:
		return x.bodyErr
	case x.ended, x.aborted:
		return errEnded
	case x.dead:
		return errUpstreamDied
	}
	x.reading = true
	return nil
}

func (x *exchange) endRead(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.reading = false
	if err != nil {
		x.bodyErr = err
	}
	x.readEnded.Broadcast()
}

// atEOF reports whether the body was read to its end. The caller holds mu.
func (x *exchange) atEOF() bool { return errors.Is(x.bodyErr, io.EOF) }
