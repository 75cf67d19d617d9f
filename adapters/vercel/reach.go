package vercel

import (
	"context"
	"net"
	"net/url"

	"github.com/isthmus/isthmus/adapters"
)

// Address is the way to envd: the public address of its port. Whoever else finds it lacks envd's secret.
func (p *place) Address(ctx context.Context, boxID string) (adapters.Endpoint, error) {
	k, err := p.recall(ctx, boxID)
	if err != nil {
		return adapters.Endpoint{}, err
	}
	u, err := url.Parse(k.route)
	if err != nil || u.Host == "" {
		p.forget(boxID)
		return adapters.Endpoint{}, vendor.Unread(adapters.KindUnavailable, err, "it names no address for the port of the sandbox "+boxID)
	}
	if p.ports == nil {
		return adapters.Endpoint{URL: u}, nil
	}
	u.Scheme = p.ports.Scheme
	address := p.ports.Host
	if p.ports.Port() == "" {
		address = net.JoinHostPort(p.ports.Hostname(), map[string]string{"http": "80", "https": "443"}[p.ports.Scheme])
	}
	dial := func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", address) }
	return adapters.Endpoint{URL: u, Dial: dial, ByHost: true}, nil
}
