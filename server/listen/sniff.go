package listen

import (
	"net"
	"sync"
	"time"
)

// tlsHandshake is the first byte of every TLS connection; no HTTP request begins with it.
const tlsHandshake = 0x16

// split makes two listeners of one: the connections that begin with TLS, and all others. A connection that
// says nothing within patience is closed. Closing both closes the listener and whatever was not accepted.
func split(listener net.Listener, patience time.Duration) (plain, secure net.Listener) {
	s := &splitter{Listener: listener, patience: patience, done: make(chan struct{}), silent: map[net.Conn]struct{}{}}
	a := &half{splitter: s, conns: make(chan net.Conn)}
	b := &half{splitter: s, conns: make(chan net.Conn)}
	s.plain, s.secure = a, b
	s.ends.Go(s.accept)
	return a, b
}

// splitter owns a goroutine that accepts, and one for each connection that has not said anything yet.
type splitter struct {
	net.Listener
	patience      time.Duration
	plain, secure *half

	once sync.Once
	done chan struct{}
	err  error // why accepting ended; set before done is closed
	ends sync.WaitGroup

	mu     sync.Mutex
	silent map[net.Conn]struct{}
}

func (s *splitter) accept() {
	for {
		conn, err := s.Listener.Accept()
		if err != nil {
			if !temporary(err) {
				s.stop(err)
				return
			}
			// Out of descriptors: the ones that are there must end first.
			select {
			case <-s.done:
				return
			case <-time.After(10 * time.Millisecond):
				continue
			}
		}
		if s.hold(conn) {
			s.ends.Go(func() { s.sort(conn) })
		}
	}
}

func temporary(err error) bool {
	ne, ok := err.(interface{ Temporary() bool })
	return ok && ne.Temporary()
}

// sort reads the first byte and hands the connection to the half that it is for.
func (s *splitter) sort(conn net.Conn) {
	first := make([]byte, 1)
	_ = conn.SetReadDeadline(time.Now().Add(s.patience))
	n, err := conn.Read(first)
	s.release(conn)
	if n == 0 || err != nil {
		_ = conn.Close()
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	to := s.plain
	if first[0] == tlsHandshake {
		to = s.secure
	}
	select {
	case to.conns <- &begunConn{Conn: conn, first: first}:
	case <-s.done:
		_ = conn.Close()
	}
}

// hold notes a connection, so that stop can close it. After stop it is closed at once.
func (s *splitter) hold(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.silent == nil {
		_ = conn.Close()
		return false
	}
	s.silent[conn] = struct{}{}
	return true
}

func (s *splitter) release(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.silent, conn)
}

// stop ends everything, once.
func (s *splitter) stop(err error) {
	s.once.Do(func() {
		s.err = err
		close(s.done)
		_ = s.Listener.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		for conn := range s.silent {
			_ = conn.Close()
		}
		s.silent = nil
	})
}

// half is one of the two listeners.
type half struct {
	*splitter
	conns chan net.Conn
}

// Accept returns the next connection of this kind.
func (h *half) Accept() (net.Conn, error) {
	select {
	case conn := <-h.conns:
		return conn, nil
	case <-h.done:
		return nil, h.err
	}
}

// Close ends both halves, and returns when their goroutines have ended.
func (h *half) Close() error {
	h.stop(net.ErrClosed)
	h.ends.Wait()
	return nil
}

// begunConn is a connection of which the first byte was read.
type begunConn struct {
	net.Conn
	first []byte
}

// Read returns the first byte, then the rest.
func (c *begunConn) Read(p []byte) (int, error) {
	if len(c.first) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.first)
	c.first = c.first[n:]
	return n, nil
}

// CloseWrite ends the direction to the client.
func (c *begunConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return net.ErrClosed
}
