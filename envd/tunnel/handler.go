package tunnel

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coder/websocket"

	"github.com/isthmus/isthmus/envd"
)

// headerFault tells the facade why the daemon could not open a port, apart from every other 502 on the way.
const (
	headerFault = "Isthmus-Tunnel-Fault"
	faultClosed = "port-closed"
	faultDial   = "dial"
)

const (
	// dialLimit bounds a dial inside the sandbox, where an answer comes at once or hardly ever.
	dialLimit = 5 * time.Second
	// chunk is how many bytes are copied at once.
	chunk = 32 << 10
)

// Handler is the daemon's end. Who may use it is decided before it.
type Handler struct {
	buffers sync.Pool
}

// NewHandler makes the daemon's end.
func NewHandler() *Handler {
	return &Handler{buffers: sync.Pool{New: func() any { return new([chunk]byte) }}}
}

// ServeHTTP opens the port that the path names and carries it until both directions have ended, one breaks, or
// the request's context ends. A port on which nothing listens is answered with 502 before the upgrade.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	port, err := strconv.ParseUint(strings.TrimPrefix(r.URL.Path, envd.RouteTunnel), 10, 16)
	if err != nil || port == 0 {
		http.Error(w, "the port must be a number from 1 to 65535", http.StatusBadRequest)
		return
	}
	inner, err := dialInside(r.Context(), int(port))
	if err != nil {
		fault := faultDial
		if errors.Is(err, syscall.ECONNREFUSED) {
			fault = faultClosed
		}
		w.Header().Set(headerFault, fault)
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer inner.Close()
	// Origin means nothing here: the control secret has been checked.
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return
	}
	h.carry(r.Context(), newConn(ws, int(port)), inner)
}

// dialInside tries both loopback addresses, as browsers do for localhost. When one refuses and the other is
// unreachable the port is closed.
func dialInside(ctx context.Context, port int) (*net.TCPConn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	var first error
	for _, host := range []string{"127.0.0.1", "::1"} {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err == nil {
			return conn.(*net.TCPConn), nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// errGone says that the far side closed its connection, having ended its direction in order.
var errGone = errors.New("the far side is gone")

// carry copies both directions.
func (h *Handler) carry(ctx context.Context, outer *Conn, inner *net.TCPConn) {
	ctx, broken := context.WithCancelCause(ctx)
	defer broken(nil)
	defer context.AfterFunc(ctx, func() {
		outer.Abort()
		if !errors.Is(context.Cause(ctx), errGone) {
			_ = inner.SetLinger(0) // A break, not an end, for the program in the sandbox too.
		}
		_ = inner.Close()
	})()
	var both, watch sync.WaitGroup
	both.Go(func() {
		h.copy(broken, &program{TCPConn: inner}, outer, inner.CloseWrite)
		// Nothing is read any more, and a program need not answer: without this a far side that went away
		// would never be noticed.
		watch.Go(func() {
			outer.untilGone()
			broken(errGone)
		})
	})
	both.Go(func() { h.copy(broken, outer, inner, outer.CloseWrite) })
	both.Wait()
	_ = outer.Close()
	watch.Wait()
}

// program is the connection to a program, which may end while it is still written to. What it answered before
// is yet to be read, and how it ended too: what it does not want any more is dropped.
type program struct {
	*net.TCPConn
	ended bool
}

// Write writes for as long as the program takes it.
func (p *program) Write(b []byte) (int, error) {
	if !p.ended {
		_, err := p.TCPConn.Write(b)
		p.ended = err != nil
	}
	return len(b), nil
}

// copy carries one direction to its end; a break ends everything.
func (h *Handler) copy(broken context.CancelCauseFunc, to io.Writer, from io.Reader, end func() error) {
	buffer := h.buffers.Get().(*[chunk]byte)
	defer h.buffers.Put(buffer)
	for {
		n, err := from.Read(buffer[:])
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				broken(err)
				return
			}
		}
		if errors.Is(err, io.EOF) {
			err = end()
			if err != nil && !errors.Is(err, net.ErrClosed) {
				broken(err)
			}
			return
		}
		if err != nil {
			broken(err)
			return
		}
	}
}
