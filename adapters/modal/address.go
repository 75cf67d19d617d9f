package modal

import (
	"context"
	"crypto/tls"
	"net"
	"net/url"
	"strconv"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/bootstrap"
)

// Address is the tunnel of the box's one port. A box whose network is blocked has none.
func (p *Provider) Address(ctx context.Context, boxID string) (adapters.Endpoint, error) {
	one, err := p.lookUp(ctx, boxID)
	if err != nil {
		return adapters.Endpoint{}, err
	}
	one.mu.Lock()
	tunnel := one.tunnel
	one.mu.Unlock()
	if tunnel == "" {
		if tunnel, err = p.askTunnel(ctx, boxID, one); err != nil {
			return adapters.Endpoint{}, err
		}
	}
	host, _, err := net.SplitHostPort(tunnel)
	if err != nil {
		return adapters.Endpoint{}, vendor.Unread(adapters.KindUnavailable, err, "the address of the sandbox is none")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if p.config.TLS != nil {
		config = p.config.TLS.Clone()
	}
	config.ServerName, config.NextProtos = host, []string{"http/1.1"}
	dialer := &tls.Dialer{Config: config}
	return adapters.Endpoint{
		// The dialer brings TLS along, so that the URL has none.
		URL:  &url.URL{Scheme: "http", Host: host},
		Dial: func(ctx context.Context) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", tunnel) },
	}, nil
}

// askTunnel asks for the address, once: a box that has none never gets one.
func (p *Provider) askTunnel(ctx context.Context, boxID string, one *known) (string, error) {
	one.mu.Lock()
	blocked := one.blocked
	one.mu.Unlock()
	if blocked {
		return "", bootstrap.ErrNoAddress
	}
	request := pb.SandboxGetTunnelsRequest_builder{SandboxId: one.id, Timeout: float32(callTime.Seconds() / 2)}.Build()
	var answer *pb.SandboxGetTunnelsResponse
	err := p.control.do(ctx, func(ctx context.Context) (err error) {
		if isFirst(one.id) {
			answer, err = p.control.stub.SandboxGetTunnels(ctx, request)
		} else {
			answer, err = p.control.stub.SandboxGetTunnelsV2(ctx, request)
		}
		return err
	})
	if adapters.KindOf(err) == adapters.KindNotFound {
		p.forget(boxID)
		return "", gone(boxID, "")
	}
	if err != nil {
		return "", err
	}
	one.mu.Lock()
	one.learnTunnels(answer.GetTunnels())
	tunnel := one.tunnel
	one.mu.Unlock()
	switch {
	case tunnel != "":
		return tunnel, nil
	case answer.GetResult().GetStatus() == pb.GenericResult_GENERIC_STATUS_TIMEOUT:
		return "", adapters.Errorf(adapters.KindUnavailable, "Modal has no address for the sandbox yet: try again")
	}
	one.mu.Lock()
	one.blocked = true
	one.mu.Unlock()
	return "", bootstrap.ErrNoAddress
}

func hostPort(host string, port uint32) string {
	if port == 0 {
		port = 443
	}
	return net.JoinHostPort(host, strconv.FormatUint(uint64(port), 10))
}
