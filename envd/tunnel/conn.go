// Package tunnel carries TCP connections to any port of a sandbox over WebSockets to its daemon: Handler is
// the daemon's end, Dial the facade's. A WebSocket passes any HTTP front, so one reachable port of a box is
// enough for all the others.
//
// Binary messages are the bytes of the connection, in any cut. A text message is the end of one direction, as
// a TCP FIN is, so that half-closed connections work. A connection that breaks, on either side, breaks on the
// other side too and never looks like an orderly end.
package tunnel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// endMessage is the text that ends one direction.
const endMessage = "end"

// closeGrace bounds how long Close may wait for the end of the stream to be sent.
const closeGrace = time.Second

// Conn is one tunnelled connection. It is a net.Conn with CloseWrite. One goroutine may read while another
// writes. A deadline that passes ends the connection, because a WebSocket cannot be resumed in mid-message.
type Conn struct {
	ws   *websocket.Conn
	port int

	read, write direction
	// message is the rest of the message that is being read; only the reader touches it and finished.
	message  io.Reader
	finished bool

	// writing is held while a message is sent.
	writing sync.Mutex
	ended   bool
	once    sync.Once
}

var _ net.Conn = (*Conn)(nil)

func newConn(ws *websocket.Conn, port int) *Conn {
	ws.SetReadLimit(-1) // Messages are streamed, whatever their length.
	c := &Conn{ws: ws, port: port}
	c.read.open()
	c.write.open()
	return c
}

// Read reads what the far side wrote. io.EOF is an orderly end of that direction; anything else is a break.
func (c *Conn) Read(p []byte) (int, error) {
	for !c.finished {
		if c.message == nil {
			if err := c.next(); err != nil {
				return 0, err
			}
			continue
		}
		n, err := c.message.Read(p)
		switch {
		case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
			c.message, err = nil, nil
		case err != nil:
			err = c.read.fault(err)
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
	return 0, io.EOF
}

func (c *Conn) next() error {
	kind, message, err := c.ws.Reader(c.read.ctx)
	if err != nil {
		return c.read.fault(err)
	}
	if kind == websocket.MessageText {
		// Read to its end, because the next header lies behind it.
		if _, err := io.Copy(io.Discard, message); err != nil {
			return c.read.fault(err)
		}
		c.finished = true
		return nil
	}
	c.message = message
	return nil
}

// Write sends p as one message and returns when it is on its way.
func (c *Conn) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.ended {
		return 0, net.ErrClosed
	}
	if err := c.ws.Write(c.write.ctx, websocket.MessageBinary, p); err != nil {
		return 0, c.write.fault(err)
	}
	return len(p), nil
}

// CloseWrite ends the direction towards the far side, which can still answer.
func (c *Conn) CloseWrite() error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.ended {
		return nil
	}
	c.ended = true
	if err := c.ws.Write(c.write.ctx, websocket.MessageText, []byte(endMessage)); err != nil {
		return c.write.fault(err)
	}
	return nil
}

// Close ends both directions in order, as closing a TCP connection does. A write that is stuck is cut off.
func (c *Conn) Close() error {
	var err error
	c.once.Do(func() {
		defer time.AfterFunc(closeGrace, c.write.cancel).Stop()
		_ = c.CloseWrite() // Broken already: then there is nothing to end.
		err = c.ws.CloseNow()
		c.read.cancel()
		c.write.cancel()
	})
	return err
}

// Abort breaks the connection: the far side sees an error instead of an end.
func (c *Conn) Abort() {
	c.once.Do(func() {
		c.read.cancel()
		c.write.cancel()
		_ = c.ws.CloseNow()
	})
}

// untilGone returns when the connection is no more. Only for who has read to the end.
func (c *Conn) untilGone() {
	for {
		_, message, err := c.ws.Reader(c.read.ctx)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, message)
	}
}

// LocalAddr is a name for logs.
func (c *Conn) LocalAddr() net.Addr { return addr("tunnel") }

// RemoteAddr names the port in the sandbox.
func (c *Conn) RemoteAddr() net.Addr { return addr("tunnel:" + strconv.Itoa(c.port)) }

// SetDeadline sets both deadlines.
func (c *Conn) SetDeadline(t time.Time) error {
	c.read.until(t)
	c.write.until(t)
	return nil
}

// SetReadDeadline ends the connection when it is still read from at t. The zero time is no deadline.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.read.until(t)
	return nil
}

// SetWriteDeadline ends the connection when it is still written to at t. The zero time is no deadline.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.write.until(t)
	return nil
}

type addr string

func (addr) Network() string  { return "tunnel" }
func (a addr) String() string { return string(a) }

// direction is the life of one direction of a connection.
type direction struct {
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	timer   *time.Timer
	expired bool
}

func (d *direction) open() { d.ctx, d.cancel = context.WithCancel(context.Background()) }

func (d *direction) until(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if t.IsZero() {
		return
	}
	d.timer = time.AfterFunc(time.Until(t), func() {
		d.mu.Lock()
		d.expired = true
		d.mu.Unlock()
		d.cancel()
	})
}

// fault words a break. It never wraps the cause: an io.EOF in it would be taken for an orderly end.
func (d *direction) fault(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.expired:
		return os.ErrDeadlineExceeded
	case d.ctx.Err() != nil:
		return net.ErrClosed
	}
	return fmt.Errorf("tunnel broken: %v", err)
}
