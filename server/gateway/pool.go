package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/isthmus/isthmus/envd/tunnel"
	"github.com/isthmus/isthmus/server/fleet"
)

// Bounds of the connections into one sandbox.
const (
	// idleToEnvd is well above what bursts of short calls need: a connection costs more than a call.
	idleToEnvd = 128
	idleToPort = 32
	keepsNone  = -1
	// envdIdleTime is below the time after which the daemon closes idle connections.
	envdIdleTime = 90 * time.Second
	// innerIdleTime is below that of the fronts of other servers.
	innerIdleTime = 30 * time.Second
	// portIdleTime is below the 5 s after which common application servers close idle connections.
	portIdleTime = 4 * time.Second
	dialTimeout  = 10 * time.Second
	copySize     = 32 << 10
)

// pools holds the connections into each sandbox, for as long as it lives. Each pool has one goroutine that
// waits for that.
type pools struct {
	dialPort DialPort

	mu      sync.Mutex
	all     map[string]*pool
	closed  chan struct{}
	closing bool
	ends    sync.WaitGroup
}

func newPools(dialPort DialPort) *pools {
	return &pools{dialPort: dialPort, all: map[string]*pool{}, closed: make(chan struct{})}
}

// of returns the pool of a route, or nil when its sandbox has ended or the gateway is closed. Two routes with
// the same end of life lead to the same box.
func (p *pools) of(route *fleet.Route) *pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing || closed(route.Gone) {
		return nil
	}
	known := p.all[route.SandboxID]
	if known != nil && known.route.Gone == route.Gone {
		return known
	}
	fresh := newPool(route, p.dialPort)
	p.all[route.SandboxID] = fresh
	p.ends.Go(func() { p.keep(fresh) })
	return fresh
}

// keep ends a pool with its sandbox or with the gateway.
func (p *pools) keep(kept *pool) {
	select {
	case <-kept.route.Gone:
	case <-p.closed:
	}
	p.mu.Lock()
	if p.all[kept.route.SandboxID] == kept {
		delete(p.all, kept.route.SandboxID)
	}
	p.mu.Unlock()
	kept.end()
}

func (p *pools) close() {
	p.mu.Lock()
	if !p.closing {
		p.closing = true
		close(p.closed)
	}
	p.mu.Unlock()
	p.ends.Wait()
}

// pool is the connections into one sandbox. Its context ends with the sandbox.
type pool struct {
	route *fleet.Route
	ctx   context.Context
	end   func()
	envd  *http.Transport
	ports *http.Transport
	// once keeps no connections: it is for what could not be sent again, should an application close one just then.
	once *http.Transport
}

func newPool(route *fleet.Route, dialPort DialPort) *pool {
	ctx, cancel := context.WithCancel(context.Background())
	p := &pool{route: route, ctx: ctx}
	idleTime := envdIdleTime
	if route.Inner != nil {
		idleTime = innerIdleTime
	}
	p.envd = transport(idleToEnvd, idleTime, p.dialer(envdDial(route)))
	ports := p.dialer(portDial(route, dialPort))
	p.ports, p.once = transport(idleToPort, portIdleTime, ports), transport(keepsNone, portIdleTime, ports)
	p.end = func() {
		cancel()
		p.envd.CloseIdleConnections()
		p.ports.CloseIdleConnections()
	}
	return p
}

// transport speaks HTTP/1.1 only: over HTTP/2 WebSockets do not pass, and it is slower on one machine.
func transport(idle int, idleTime time.Duration, dial dialFunc) *http.Transport {
	t := &http.Transport{
		DialContext:           dial,
		DisableCompression:    true, // bytes pass as they are
		MaxIdleConns:          0,
		MaxIdleConnsPerHost:   idle,
		IdleConnTimeout:       idleTime,
		TLSHandshakeTimeout:   dialTimeout,
		ExpectContinueTimeout: time.Second,
		ReadBufferSize:        copySize,
		WriteBufferSize:       copySize,
		Protocols:             new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	return t
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// dialer bounds dial, ends it with the sandbox and makes its connections tell of their own end.
func (p *pool) dialer(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		defer context.AfterFunc(p.ctx, cancel)()
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, &dialError{err}
		}
		return &upstreamConn{Conn: conn}, nil
	}
}

func envdDial(route *fleet.Route) dialFunc {
	if route.Endpoint.Dial == nil {
		return new(net.Dialer).DialContext
	}
	return func(ctx context.Context, _, _ string) (net.Conn, error) { return route.Endpoint.Dial(ctx) }
}

// portDial reads the port from the address that rewrite made. A port that is closed is tried again for a
// moment: programs are often called just when they start to listen.
func portDial(route *fleet.Route, dialPort DialPort) dialFunc {
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		_, text, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("port of %q: %w", address, err)
		}
		pause := 10 * time.Millisecond
		for try := 1; ; try++ {
			conn, err := dialPort(ctx, route, uint16(port))
			if try == portTries || !errors.Is(err, tunnel.ErrPortClosed) {
				return conn, err
			}
			select {
			case <-ctx.Done():
				return nil, err
			case <-time.After(pause):
			}
			pause *= 2
		}
	}
}

// portTries makes 150 ms of pauses.
const portTries = 5

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
