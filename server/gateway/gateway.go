// Package gateway is the data plane: it carries a client's request to a port of a sandbox and the answer back,
// byte for byte and as it comes. Port envd.Port is the daemon, reached by the route's endpoint; any other port
// is reached through the daemon's tunnel.
//
// Three things make it more than a reverse proxy. It guards: a sandbox's secrets are added here and never
// taken from a client, internal routes are not reachable, traffic tokens are checked. It is full duplex over
// HTTP/1.1 without letting requests be smuggled behind an early answer (exchange.go says how). And it never
// pretends: a stream whose sandbox ended breaks off, and only a sandbox that is really gone answers 502 in the
// words by which clients know that.
package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"

	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/server/fleet"
)

// Sandboxes finds running sandboxes.
type Sandboxes interface {
	// Route returns where a running sandbox is. The error is an *adapters.Error: KindNotFound when there is
	// no such sandbox or it has ended; a *fleet.Asleep when traffic may wake it.
	Route(ctx context.Context, sandboxID string) (*fleet.Route, error)
	// Wake resumes a paused sandbox that traffic may wake, and returns when it runs.
	Wake(ctx context.Context, sandboxID string) error
	// Match returns the first running sandbox for which check holds.
	Match(ctx context.Context, check func(sandboxID, envdToken string) bool) (sandboxID string, found bool)
}

// DialPort opens a connection to a TCP port inside a sandbox. An error that is tunnel.ErrPortClosed means that
// nothing listens there.
type DialPort func(ctx context.Context, route *fleet.Route, port uint16) (net.Conn, error)

// Config is what a gateway works with.
type Config struct {
	Sandboxes Sandboxes
	// DialPort reaches the ports of sandboxes; nil: Tunnel.
	DialPort DialPort
	// Log takes the failures to reach a sandbox.
	Log *slog.Logger
}

// Gateway answers requests to sandboxes. It implements edge.Gateway.
type Gateway struct {
	sandboxes Sandboxes
	log       *slog.Logger
	pools     *pools
	misses    *limiter
	proxy     *httputil.ReverseProxy
	// unary is for calls whose answer comes all at once: its header need not be sent before its body.
	unary *httputil.ReverseProxy
}

// New makes a gateway. It must be closed.
func New(c Config) *Gateway {
	if c.DialPort == nil {
		c.DialPort = Tunnel
	}
	g := &Gateway{
		sandboxes: c.Sandboxes,
		log:       c.Log,
		pools:     newPools(c.DialPort),
		misses:    newLimiter(missesPerSecond, missesAtOnce, limitedAddresses),
	}
	g.proxy = &httputil.ReverseProxy{
		Rewrite:        rewrite,
		Transport:      roundTripper{},
		FlushInterval:  -1, // with 0 a slow answer of known length arrives only at its end
		BufferPool:     newBuffers(),
		ModifyResponse: begin,
		ErrorHandler:   g.failed,
		ErrorLog:       slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
	}
	unary := *g.proxy
	unary.FlushInterval = 0
	g.unary = &unary
	return g
}

// Close aborts all streams and returns when what the gateway started has ended, except for handlers, which
// belong to their server. Requests that come later are answered as if no sandbox was there.
func (g *Gateway) Close() { g.pools.close() }

// ServeSandbox carries a request to a port of a sandbox.
func (g *Gateway) ServeSandbox(w http.ResponseWriter, r *http.Request, sandboxID string, port uint16) {
	target := target{sandboxID: sandboxID, port: port, rpc: rpcOf(r, port)}
	switch {
	case r.Method == http.MethodConnect:
		target.refuse(w, r, http.StatusMethodNotAllowed, "CONNECT is not served: send the request itself")
		return
	case port == envd.Port && internalPath(r.URL):
		refuseInternal(w, r)
		return
	}
	route, err := g.sandboxes.Route(r.Context(), sandboxID)
	var asleep *fleet.Asleep
	if errors.As(err, &asleep) {
		if mayNotWake(asleep, port, r.Header) {
			target.refuse(w, r, http.StatusForbidden, messageNoWake)
			return
		}
		route, err = g.awaken(r.Context(), sandboxID)
	}
	if err != nil {
		g.refuseRoute(w, r, target, err)
		return
	}
	if route.Inner != nil && port == envd.Port && controlPath(r.URL) {
		refuseInternal(w, r)
		return
	}
	if message := trafficRefusal(route, port, r.Header); message != "" {
		target.refuse(w, r, http.StatusForbidden, message)
		return
	}
	pool := g.pools.of(route)
	if pool == nil {
		target.gone(w, r)
		return
	}
	g.forward(w, r, target, pool)
}

// forward runs one exchange through the reverse proxy.
func (g *Gateway) forward(w http.ResponseWriter, r *http.Request, target target, pool *pool) {
	x := newExchange(w, r, target, pool)
	defer x.end()
	defer context.AfterFunc(pool.ctx, x.abort)()

	out := r.WithContext(x.ctx)
	body := guardedBody{exchange: x, body: r.Body}
	switch {
	case x.hasBody && target.rpc != notRPC && r.ContentLength > 0 && r.ContentLength <= smallBody:
		out.Header = withoutUpgrade(r.Header)
		out.Body = x.readAhead(body, r.ContentLength)
	case x.hasBody:
		// Not an error where it is not known: those connections are full duplex by nature.
		_ = x.control.EnableFullDuplex()
		// A request that asks for another protocol and has a body at once would have its body read after the
		// connection changed hands. The server may ignore the wish, so it does.
		out.Header = withoutUpgrade(r.Header)
		out.Body = body
	}
	proxy := g.proxy
	if target.rpc == unaryRPC {
		proxy = g.unary
	}
	proxy.ServeHTTP(hijackWatcher{ResponseWriter: w, exchange: x}, out)
}
