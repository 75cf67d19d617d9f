package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// connections are the TCP connections of one box.
type connections struct {
	slots chan struct{}
	share *share
	wait  sync.WaitGroup
}

func dialTCP(ctx context.Context, to netip.AddrPort) (*net.TCPConn, error) {
	c, err := dialer().DialContext(ctx, "tcp", to.String())
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// accept takes connections until ctx ends, and has each served. Over the limit they are reset, so that programs see
// it at once.
func (c *connections) accept(ctx context.Context, l *net.TCPListener, serve func(context.Context, *net.TCPConn)) error {
	for {
		conn, err := l.AcceptTCP()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				reset(conn)
			}
			return nil
		case err != nil && !passing(err):
			return err
		case err != nil:
			pause(ctx, 50*time.Millisecond)
			continue
		}
		if !c.begin() {
			reset(conn)
			continue
		}
		c.wait.Go(func() {
			defer c.end()
			serve(ctx, conn)
		})
	}
}

// begin says whether one more connection may be open; end is then called after it.
func (c *connections) begin() bool {
	select {
	case c.slots <- struct{}{}:
	default:
		return false
	}
	if !c.share.take() {
		<-c.slots
		return false
	}
	return true
}

func (c *connections) end() {
	c.share.give()
	<-c.slots
}

// passing says that accepting will work again when something else has been closed.
func passing(err error) bool {
	for _, e := range []error{unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// carry copies one direction (inside the kernel: both are TCP) and passes its end on: an end as an end, a
// break as a break.
func carry(to, from *net.TCPConn) {
	if _, err := io.Copy(to, from); err != nil {
		reset(to)
		reset(from)
		return
	}
	_ = to.CloseWrite()
}

// reset ends a connection so that the peer sees it was broken.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
