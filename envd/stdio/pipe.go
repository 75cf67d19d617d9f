package stdio

import (
	"io"
	"net"
	"sync"
	"time"
)

// pipe is a stream as net/http wants to see it. It has no deadlines: nothing that is used here sets them.
type pipe struct {
	io.ReadWriteCloser
	once   sync.Once
	closed chan struct{}
}

var _ net.Conn = (*pipe)(nil)

func newPipe(stream io.ReadWriteCloser) *pipe {
	return &pipe{ReadWriteCloser: stream, closed: make(chan struct{})}
}

// Close closes the stream. Twice is fine.
func (p *pipe) Close() error {
	var err error
	p.once.Do(func() {
		err = p.ReadWriteCloser.Close()
		close(p.closed)
	})
	return err
}

// LocalAddr is a name for logs.
func (p *pipe) LocalAddr() net.Addr { return address{} }

// RemoteAddr is a name for logs.
func (p *pipe) RemoteAddr() net.Addr { return address{} }

// SetDeadline does nothing.
func (p *pipe) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (p *pipe) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (p *pipe) SetWriteDeadline(time.Time) error { return nil }

type address struct{}

func (address) Network() string { return "stdio" }
func (address) String() string  { return "stdio" }
