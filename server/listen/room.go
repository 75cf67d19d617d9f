package listen

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"sync"
	"syscall"
)

// leastConnections is the bound where the descriptors that this process may have cannot be told.
const leastConnections = 512

// room bounds the connections that are open at one time. Where there is none left, the connection that has been
// without a request for longest makes room, also one that never said anything or has not ended its first request's
// headers: a flood of them locks nobody out. When all have a request, the new one is closed.
type room struct {
	net.Listener
	most int

	mu   sync.Mutex
	open int
	idle *list.List // of *roomConn, the one that waits longest first
}

// newRoom bounds a listener's connections; most 0: half of the descriptors that this process may have.
func newRoom(l net.Listener, most int) *room {
	if most == 0 {
		most = leastConnections
		var limit syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err == nil {
			most = int(min(limit.Cur/2, 1<<20))
		}
	}
	return &room{Listener: l, most: most, idle: list.New()}
}

// Accept waits for a connection that there is room for.
func (r *room) Accept() (net.Conn, error) {
	for {
		conn, err := r.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if r.clear() {
			return r.enter(conn), nil
		}
		_ = conn.Close()
	}
}

// clear makes room for one more, and reports whether there is.
func (r *room) clear() bool {
	r.mu.Lock()
	var oldest *roomConn
	full := r.open >= r.most
	if front := r.idle.Front(); full && front != nil {
		oldest = front.Value.(*roomConn)
	}
	r.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close()
	}
	return !full || oldest != nil
}

func (r *room) enter(conn net.Conn) *roomConn {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &roomConn{Conn: conn, room: r}
	c.at = r.idle.PushBack(c)
	r.open++
	return c
}

// roomConn is one of the connections.
type roomConn struct {
	net.Conn
	room *room

	// Under the room's lock: at is its place among the idle, nil while it has requests or is closed.
	at       *list.Element
	requests int
	closed   bool
}

// begin notes that a request of the connection is being answered.
func (c *roomConn) begin() {
	c.room.mu.Lock()
	defer c.room.mu.Unlock()
	c.requests++
	c.leaveIdle()
}

// end notes that it was answered.
func (c *roomConn) end() {
	c.room.mu.Lock()
	defer c.room.mu.Unlock()
	if c.requests--; c.requests == 0 && !c.closed {
		c.at = c.room.idle.PushBack(c)
	}
}

func (c *roomConn) leaveIdle() {
	if c.at != nil {
		c.room.idle.Remove(c.at)
		c.at = nil
	}
}

// Close closes the connection and gives its room back, once.
func (c *roomConn) Close() error {
	c.room.mu.Lock()
	if !c.closed {
		c.closed = true
		c.room.open--
		c.leaveIdle()
	}
	c.room.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite ends the direction to the client.
func (c *roomConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return net.ErrClosed
}

type roomKey struct{}

// withRoom is the context of a connection's requests.
func withRoom(ctx context.Context, conn net.Conn) context.Context {
	for {
		switch c := conn.(type) {
		case *roomConn:
			return context.WithValue(ctx, roomKey{}, c)
		case *jsonConn:
			conn = c.Conn
		case *begunConn:
			conn = c.Conn
		case *tls.Conn:
			conn = c.NetConn()
		default:
			return ctx
		}
	}
}

// occupy notes that a request is being answered, until the function that it returns is called.
func occupy(ctx context.Context) (done func()) {
	c, ok := ctx.Value(roomKey{}).(*roomConn)
	if !ok {
		return func() {}
	}
	c.begin()
	return c.end
}
