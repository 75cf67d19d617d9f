package tunnel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"

	"github.com/coder/websocket"

	"github.com/isthmus/isthmus/envd"
)

// ErrPortClosed says that nothing listens on the port in the sandbox.
var ErrPortClosed = errors.New("port is not open in the sandbox")

// Target is a daemon as the facade reaches it.
type Target struct {
	// URL is the daemon's base address.
	URL *url.URL
	// Header is added to the handshake; it may be nil.
	Header http.Header
	// Dial opens the byte stream to the daemon; nil dials the URL.
	Dial func(ctx context.Context) (net.Conn, error)
	// Control is the box's control secret.
	Control string
}

// Dial opens a connection to a port of the sandbox. ctx bounds the opening only. The error is ErrPortClosed
// when the daemon answered that nothing listens there; any other error means that the daemon itself could not
// be reached or refused.
func Dial(ctx context.Context, to Target, port int) (*Conn, error) {
	header := to.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set(envd.HeaderControl, to.Control)
	// One transport for one connection: a WebSocket is never shared, so nothing could be kept for later.
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	if to.Dial != nil {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return to.Dial(ctx) }
	}
	target := to.URL.JoinPath(envd.RouteTunnel, strconv.Itoa(port)).String()
	ws, answer, err := websocket.Dial(ctx, target, &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: transport, CheckRedirect: noRedirect},
		HTTPHeader: header,
	})
	if err != nil {
		if answer != nil && answer.Header.Get(headerFault) == faultClosed {
			return nil, ErrPortClosed
		}
		return nil, fmt.Errorf("open tunnel to port %d: %w", port, err)
	}
	return newConn(ws, port), nil
}

// noRedirect keeps the control secret from being sent elsewhere.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
