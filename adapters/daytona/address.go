package daytona

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/isthmus/isthmus/adapters"
)

// Address is the way to envd's port: its preview, with the token that opens it. Daytona gives a new token when the
// sandbox was started again.
func (p *Provider) Address(ctx context.Context, boxID string) (adapters.Endpoint, error) {
	if k, there := p.recall(boxID); there && k.endpoint.URL != nil {
		return k.endpoint, nil
	}
	found, err := p.present(ctx, boxID)
	if err != nil {
		return adapters.Endpoint{}, err
	}
	switch box := found.box(); {
	case !box.Alive:
		return adapters.Endpoint{}, adapters.Errorf(adapters.KindNotFound, "the sandbox %s has ended", boxID)
	case box.Paused:
		return adapters.Endpoint{}, adapters.Errorf(adapters.KindPrecondition, "the sandbox %s is paused: resume it first", boxID)
	}
	var preview struct {
		URL   string `json:"url"`
		Token string `json:"token"`
	}
	path := sandboxPath(found.ID, "ports", strconv.Itoa(p.config.Port), "preview-url")
	if err := p.api.send(ctx, request{method: http.MethodGet, path: path, into: &preview}); err != nil {
		return adapters.Endpoint{}, err
	}
	if preview.URL == "" {
		return adapters.Endpoint{}, vendor.Unread(adapters.KindUnavailable, nil, "it names no address of a port of the sandbox")
	}
	at, err := url.Parse(strings.TrimSuffix(preview.URL, "/"))
	if err != nil || at.Host == "" || !p.api.trusts(at) {
		return adapters.Endpoint{}, adapters.Errorf(adapters.KindUnavailable, "Daytona names no address for a port of the sandbox that can be used")
	}
	endpoint := adapters.Endpoint{
		URL: at, Dial: loopback(at), ByHost: true,
		Header: http.Header{"X-Daytona-Preview-Token": {preview.Token}, "X-Daytona-Skip-Preview-Warning": {"true"}},
	}
	p.remember(boxID, func(k *known) { k.endpoint = endpoint })
	return endpoint, nil
}

// loopback connects to names below localhost, as servers on this machine have them for previews: no name server need
// know them (RFC 6761). Nil: the name is looked up as any other.
func loopback(at *url.URL) func(context.Context) (net.Conn, error) {
	if !strings.HasSuffix(at.Hostname(), ".localhost") {
		return nil
	}
	port := at.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[at.Scheme]
	}
	return func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("localhost", port))
	}
}

// Furnished says whether a box was made of a snapshot that has envd.
func (p *Provider) Furnished(boxID string) bool {
	k, _ := p.recall(boxID)
	return k.baked
}
