package egress

import (
	"bytes"
	"context"
	"io"
	"net"
	"time"
)

// Interceptor takes over connections to some hosts, in place of carrying their bytes as they are.
type Interceptor interface {
	// Wants reports whether it takes over what goes to a host.
	Wants(host string) bool
	// Intercept carries a connection to its end and closes it; what the program said comes once more. The host is the
	// one that the program named in TLS (secure) or in a request of HTTP, and the address has that name. dial connects
	// to the address. It ends with ctx.
	Intercept(ctx context.Context, program net.Conn, host string, secure bool, dial func(context.Context) (net.Conn, error))
}

// intercept gives a connection to the policy's interceptor when it wants the host that the program names. When it is
// not taken, heard is what was read of it: with an interceptor a program has helloTime to speak first, and passes on as
// it is after that.
func (e *Egress) intercept(ctx context.Context, p *passage, box *net.TCPConn, said []byte) (heard []byte, taken bool) {
	interceptor := e.policy.Load().Interceptor
	if interceptor == nil {
		return said, false
	}
	stop := context.AfterFunc(ctx, func() { reset(box) })
	defer stop()
	_ = box.SetReadDeadline(time.Now().Add(helloTime))
	h := listenTo(io.MultiReader(bytes.NewReader(said), box))
	if box.SetReadDeadline(time.Time{}) != nil || !e.hears(p, h) {
		reset(box)
		return nil, true
	}
	if !h.speaks || !interceptor.Wants(h.name) || !e.has(ctx, h.name, p.to.Addr()) {
		return h.said, false
	}
	interceptor.Intercept(ctx, &begun{box, io.MultiReader(bytes.NewReader(h.said), box)}, h.name, h.said[0] == handshake,
		func(ctx context.Context) (net.Conn, error) { return dialer().DialContext(ctx, "tcp", p.to.String()) })
	return nil, true
}

// begun is a connection whose beginning was read.
type begun struct {
	*net.TCPConn
	all io.Reader
}

func (b *begun) Read(p []byte) (int, error) { return b.all.Read(p) }
