//go:build linux

package bare

import (
	"context"
	"net"
	"net/url"

	"github.com/isthmus/isthmus/adapters"
)

// OnlyExec is the cloud as one that lets programs be started in a box and nothing else.
type OnlyExec struct{ *Cloud }

// OnePort is the cloud as one that also lets one port of a box be reached.
type OnePort struct {
	*Cloud
	Port uint16
}

// Address is the way to the port.
func (o OnePort) Address(_ context.Context, id string) (adapters.Endpoint, error) {
	one, err := o.find(id)
	if err != nil {
		return adapters.Endpoint{}, err
	}
	return adapters.Endpoint{
		URL:  &url.URL{Scheme: "http", Host: id},
		Dial: func(ctx context.Context) (net.Conn, error) { return one.Dial(ctx, o.Port) },
	}, nil
}
