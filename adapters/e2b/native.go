package e2b

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
)

// The headers that address a port of a sandbox.
const (
	headerID   = "E2b-Sandbox-Id"
	headerPort = "E2b-Sandbox-Port"
)

// keepSeconds is the life that connect asks for: it never shortens one, and there is no call without it.
const keepSeconds = 15

// Reach is the way to the envd of a box.
func (p *Provider) Reach(ctx context.Context, boxID string) (adapters.Endpoint, error) {
	inner, err := p.Native(ctx, boxID)
	if err != nil {
		return adapters.Endpoint{}, err
	}
	return inner.Port(envd.Port), nil
}

// Native returns the box as its server knows it. The tokens are asked for by a connect when they are not
// remembered.
func (p *Provider) Native(ctx context.Context, boxID string) (adapters.Inner, error) {
	id, known := p.recall(boxID)
	if id == "" || known == nil {
		var err error
		if known, err = p.connect(ctx, boxID); err != nil {
			return adapters.Inner{}, err
		}
		id = known.SandboxID
	}
	domain := p.config.Domain
	if known.Domain != nil {
		domain = cmp.Or(*known.Domain, domain)
	}
	return adapters.Inner{
		ID: id, EnvdVersion: known.EnvdVersion, EnvdToken: known.EnvdToken, TrafficToken: known.TrafficToken,
		Port: func(port uint16) adapters.Endpoint { return p.endpoint(id, domain, port) },
	}, nil
}

func (p *Provider) connect(ctx context.Context, boxID string) (*access, error) {
	inner, err := p.innerOf(ctx, boxID)
	if err != nil {
		return nil, err
	}
	var got access
	_, err = p.api.send(ctx, request{
		method: http.MethodPost, path: "/sandboxes/" + inner + "/connect", body: map[string]int{"timeout": keepSeconds}, into: &got,
	})
	if err != nil {
		return nil, p.lost(boxID, err)
	}
	got.SandboxID = inner
	p.remember(boxID, inner, &got)
	return &got, nil
}

// lost forgets a box of which the server knows no more.
func (p *Provider) lost(boxID string, err error) error {
	if adapters.KindOf(err) != adapters.KindNotFound {
		return err
	}
	p.forget(boxID)
	return gone(boxID)
}

// endpoint is the way to a port: by host name, or by headers at the one URL.
func (p *Provider) endpoint(id, domain string, port uint16) adapters.Endpoint {
	header := http.Header{headerID: {id}, headerPort: {strconv.Itoa(int(port))}}
	if p.sandbox == nil {
		host := strconv.Itoa(int(port)) + "-" + id + "." + domain
		return adapters.Endpoint{URL: &url.URL{Scheme: p.api.base.Scheme, Host: host}, Header: header}
	}
	base := *p.sandbox
	return adapters.Endpoint{URL: &base, Header: header}
}
