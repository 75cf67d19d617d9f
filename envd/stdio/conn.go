package stdio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// Conn is one connection over a link. A deadline that passes ends it.
type Conn struct {
	life context.Context
	end  context.CancelCauseFunc
	in   *io.PipeWriter
	out  io.ReadCloser

	mu          sync.Mutex
	read, write *time.Timer
}

var _ net.Conn = (*Conn)(nil)

func newConn(life context.Context, end context.CancelCauseFunc, in *io.PipeWriter, out io.ReadCloser) *Conn {
	c := &Conn{life: life, end: end, in: in, out: out}
	// The transport does not read the body any more when the stream has ended: a write must not wait for it.
	context.AfterFunc(life, func() { _ = in.CloseWithError(context.Cause(life)) })
	return c
}

// Read reads what the daemon wrote. io.EOF is an orderly end, anything else a break.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.out.Read(p)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		c.end(net.ErrClosed) // the daemon has ended both directions
		err = io.EOF
	default:
		err = c.fault(err)
		c.end(err)
	}
	return n, err
}

// Write writes to the daemon, and returns when the bytes were taken over.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.in.Write(p)
	if err != nil {
		err = c.fault(err)
	}
	return n, err
}

// CloseWrite ends the direction to the daemon.
func (c *Conn) CloseWrite() error { return c.in.Close() }

// Close ends both directions.
func (c *Conn) Close() error {
	_ = c.SetDeadline(time.Time{})
	_ = c.in.Close()
	c.end(net.ErrClosed)
	return c.out.Close()
}

// fault words a break: what was done here counts before what the transport makes of it.
func (c *Conn) fault(err error) error {
	if cause := context.Cause(c.life); cause != nil {
		return cause
	}
	return fmt.Errorf("the connection over the stream broke: %v", err)
}

// LocalAddr is a name for logs.
func (c *Conn) LocalAddr() net.Addr { return address{} }

// RemoteAddr is a name for logs.
func (c *Conn) RemoteAddr() net.Addr { return address{} }

// SetDeadline ends the connection at t; the zero time is never.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline ends the connection at t; the zero time is never.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.until(&c.read, t)
	return nil
}

// SetWriteDeadline ends the connection at t; the zero time is never.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.until(&c.write, t)
	return nil
}

func (c *Conn) until(timer **time.Timer, t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if *timer != nil {
		(*timer).Stop()
		*timer = nil
	}
	if !t.IsZero() {
		*timer = time.AfterFunc(time.Until(t), func() { c.end(os.ErrDeadlineExceeded) })
	}
}
