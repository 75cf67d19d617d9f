//go:build linux

package machine

import (
	"context"

	"github.com/isthmus/isthmus/adapters"
)

// Network is what a box may reach. Allow beats Deny; what neither names follows Internet.
type Network struct {
	Internet bool
	// Allow and Deny are addresses and CIDRs; Allow also names, and patterns such as *.example.com.
	Allow, Deny []string
	// Headers are put into the requests that are allowed, by the name of a host or a pattern such as *.example.com, or
	// *. They are in HTTP/1 alone, over TLS for programs that trust what the box's system trusts: a certificate of the
	// cloud is added to that.
	Headers map[string]map[string]string
	// SecureOnly leaves requests without TLS as they are.
	SecureOnly bool
}

func (n Network) neutral() adapters.Network {
	return adapters.Network{Internet: n.Internet, AllowOut: n.Allow, DenyOut: n.Deny}
}

// SetNetwork replaces the rules of a running box at once: what is open and would not be allowed any more is cut, and the
// next request has the new headers. A box that is stopped gets them at its restart.
func (b *Box) SetNetwork(ctx context.Context, n Network) error {
	before := b.inject(n.injected())
	if err := b.lead(ctx, n); err != nil {
		b.inject(before)
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spec.Network = n.neutral()
	return nil
}

// lead makes a running box follow other rules.
func (b *Box) lead(ctx context.Context, n Network) error {
	stopped, err := b.Stopped(ctx)
	if err != nil || stopped {
		return err
	}
	if err := b.trust(ctx); err != nil {
		return err
	}
	return b.cloud.local.SetNetwork(ctx, b.id, n.neutral())
}

// injected are the headers of a network.
func (n Network) injected() injected { return injected{n.Headers, n.SecureOnly} }

// injected are the headers that a box's network puts into requests, by host. They are secrets.
type injected struct {
	headers    map[string]map[string]string
	secureOnly bool
}

// inject replaces the headers and returns those before.
func (b *Box) inject(headers injected) (before injected) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, b.injected = b.injected, headers
	return before
}
