package gateway

import (
	"context"
	"net"
	"net/http"

	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/envd/tunnel"
	"github.com/isthmus/isthmus/server/fleet"
)

// Tunnel is the DialPort that goes through the tunnel of the sandbox's daemon.
func Tunnel(ctx context.Context, route *fleet.Route, port uint16) (net.Conn, error) {
	header := route.Endpoint.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	if route.Transport != "" {
		header.Set(envd.HeaderTransport, route.Transport)
	}
	conn, err := tunnel.Dial(ctx, tunnel.Target{
		URL:     route.Endpoint.URL,
		Header:  header,
		Dial:    route.Endpoint.Dial,
		Control: route.Control,
	}, int(port))
	if err != nil {
		return nil, err // a nil *Conn must not become a net.Conn
	}
	return conn, nil
}
