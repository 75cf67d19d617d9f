package daytona

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/isthmus/isthmus/adapters"
)

// settings are what a sandbox may reach, in Daytona's words: lists of all that is allowed, of IPv4 networks and of
// names. An empty list restricts nothing.
type settings struct {
	BlockAll bool   `json:"networkBlockAll"`
	Networks string `json:"networkAllowList"`
	Domains  string `json:"domainAllowList"`
}

// everything is the whole of IPv4.
const everything = "0.0.0.0/0"

// networkOf translates. Daytona allows nothing, all, or a list: what cannot be said so is refused.
func networkOf(n adapters.Network) (settings, error) {
	if len(n.Rules) > 0 {
		return settings{}, adapters.Errorf(adapters.KindUnsupported, "Daytona adds no headers to requests: leave the rules of the network away, or use another pool")
	}
	closed := !n.Internet
	for _, denied := range n.DenyOut {
		if denied != everything && denied != "::/0" {
			return settings{}, adapters.Errorf(adapters.KindUnsupported,
				"Daytona cannot deny single addresses: deny %s and allow what is needed, or use another pool", everything)
		}
		closed = closed || denied == everything
	}
	if !closed || slices.Contains(n.AllowOut, everything) {
		return settings{}, nil // nothing is denied that could be allowed again
	}
	var networks, domains []string
	for _, one := range n.AllowOut {
		network, isNetwork, err := ipv4(one)
		switch {
		case err != nil:
			return settings{}, err
		case one == "*":
			return settings{}, adapters.Errorf(adapters.KindUnsupported, "Daytona allows names and patterns such as *.example.com, not *: name what is needed, or use another pool")
		case isNetwork:
			networks = append(networks, network)
		default:
			domains = append(domains, one)
		}
	}
	return settings{BlockAll: len(n.AllowOut) == 0, Networks: strings.Join(networks, ","), Domains: strings.Join(domains, ",")}, nil
}

// ipv4 reads an address or a network; a name is neither.
func ipv4(text string) (network string, is bool, err error) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		addr, err := netip.ParseAddr(text)
		if err != nil {
			return "", false, nil //nolint:nilerr // it is a name
		}
		prefix = netip.PrefixFrom(addr, addr.BitLen())
	}
	if !prefix.Addr().Is4() {
		return "", false, adapters.Errorf(adapters.KindUnsupported, "Daytona allows networks of IPv4 only, not %s", text)
	}
	return prefix.Masked().String(), true, nil
}

// SetNetwork replaces what a running box may reach.
func (p *Provider) SetNetwork(ctx context.Context, boxID string, network adapters.Network) error {
	next, err := networkOf(network)
	if err != nil {
		return err
	}
	found, err := p.present(ctx, boxID)
	if err != nil {
		return err
	}
	return p.api.insist(ctx, request{method: http.MethodPost, path: sandboxPath(found.ID, "network-settings"), body: next})
}
