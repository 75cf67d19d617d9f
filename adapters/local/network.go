//go:build linux

package local

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local/egress"
	"github.com/isthmus/isthmus/adapters/local/inside"
)

var _ adapters.Networker = (*Local)(nil)

// maxRules bounds the lists of one box: each connection goes through them.
const maxRules = 1000

// reach is what a box may reach, as its record keeps it. What the gateway does of adapters.Network is not in it.
type reach struct {
	Internet bool     `json:"internet"`
	Allow    []string `json:"allow,omitempty"`
	Deny     []string `json:"deny,omitempty"`
}

// reachOf takes what is for this machine to keep.
func (l *Local) reachOf(n adapters.Network) reach {
	if l.tier.bare || l.config.NoEgress {
		return reach{}
	}
	return reach{Internet: n.Internet, Allow: n.AllowOut, Deny: n.DenyOut}
}

// any reports whether there is something that the box may reach.
func (r reach) any() bool { return r.Internet || len(r.Allow) > 0 }

func (r reach) equal(other reach) bool {
	return r.Internet == other.Internet && slices.Equal(r.Allow, other.Allow) && slices.Equal(r.Deny, other.Deny)
}

// ruled is the policy of a box.
func (l *Local) ruled(boxID string, r reach) (egress.Policy, error) {
	p, err := l.policy(r)
	if l.config.Interceptor != nil {
		p.Interceptor = l.config.Interceptor(boxID)
	}
	return p, err
}

// policy is the same for the egress, with what the operator configured.
func (l *Local) policy(r reach) (egress.Policy, error) {
	p := egress.Policy{Internet: r.Internet, AllowPrivate: l.config.AllowPrivate, Resolvers: l.config.Resolvers}
	for _, text := range r.Allow {
		prefix, err := parsePrefix(text)
		switch {
		case err == nil:
			p.Allow = append(p.Allow, prefix)
		case egress.ValidName(text):
			p.AllowNames = append(p.AllowNames, text)
		default:
			return p, adapters.Errorf(adapters.KindInvalid, "%q may not stand in a list of what is allowed: name an address, a CIDR, a host or *.HOST", text)
		}
	}
	for _, text := range r.Deny {
		prefix, err := parsePrefix(text)
		if err != nil {
			return p, adapters.Errorf(adapters.KindInvalid, "%q may not stand in a list of what is denied: name an address or a CIDR", text)
		}
		p.Deny = append(p.Deny, prefix)
	}
	return p, nil
}

// parsePrefix reads an address or a CIDR.
func parsePrefix(text string) (netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return netip.Prefix{}, err
		}
		return a.Unmap().WithZone("").Prefix(a.Unmap().BitLen())
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}

// checkNetwork refuses what boxes here cannot be held to.
func (l *Local) checkNetwork(n adapters.Network) error {
	lists := len(n.AllowOut) + len(n.DenyOut)
	switch {
	case !n.Internet && !l.description.InternetOff:
		return adapters.Errorf(adapters.KindUnsupported, "this machine runs sandboxes without isolation and cannot take the internet away: allow it")
	case len(n.Rules) > 0:
		return adapters.Errorf(adapters.KindUnsupported, "this machine adds no headers to requests: leave the network rules out")
	case lists > 0 && !l.listens():
		return adapters.Errorf(adapters.KindUnsupported, "this machine keeps no lists of what sandboxes may reach: leave them out")
	case lists > maxRules:
		return adapters.Errorf(adapters.KindInvalid, "the lists of what a sandbox may reach have at most %d entries together", maxRules)
	}
	_, err := l.policy(l.reachOf(n))
	return err
}

// listens reports whether the boxes' traffic comes by here.
func (l *Local) listens() bool { return !l.tier.bare && !l.config.NoEgress }

// SetNetwork replaces what a running box may reach. Connections that are open and would not be allowed any more are cut.
func (l *Local) SetNetwork(ctx context.Context, boxID string, n adapters.Network) error {
	if !l.listens() {
		return adapters.Errorf(adapters.KindUnsupported, "the network of a sandbox of this machine cannot be changed")
	}
	if err := l.checkNetwork(n); err != nil {
		return err
	}
	done, err := l.turns.take(ctx, boxID)
	if err != nil {
		return err
	}
	defer done()
	b, err := l.boxes.get(boxID)
	if err != nil {
		return err
	}
	if !b.alive() || b.as().record.Stocked {
		return gone(boxID)
	}
	if err := l.led(ctx, b, l.reachOf(n)); err != nil {
		return asAdapterError(ctx, err, "the network of the sandbox could not be changed: try again")
	}
	return nil
}

// led makes the box's traffic follow other rules: written down first, so that the next facade follows them too.
func (l *Local) led(ctx context.Context, b *box, r reach) error {
	b.leading.Lock()
	defer b.leading.Unlock()
	next := *b.as()
	begin := r.any() && !next.record.Internet
	next.record.Reach, next.record.Internet = r, next.record.Internet || r.any()
	if begin { // its first way out: PID 1 has yet to make the sockets
		traffic, err := b.hand(ctx, inside.Claim{Open: true})
		if err != nil {
			return err
		}
		e, err := l.openTraffic(next.record, traffic)
		if err != nil {
			return err
		}
		if err := next.record.save(next.path); err != nil {
			e.Close()
			return err
		}
		b.role.Store(&next)
		b.traffic = e
		l.carry(b, e)
		return nil
	}
	if err := next.record.save(next.path); err != nil {
		return err
	}
	b.role.Store(&next)
	if b.traffic == nil {
		return nil // whoever opens it finds these
	}
	p, err := l.ruled(next.record.BoxID, r)
	if err != nil {
		return err
	}
	return b.traffic.SetPolicy(p)
}
