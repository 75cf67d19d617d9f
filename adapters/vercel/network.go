package vercel

import (
	"context"
	"net/http"
	"net/netip"
	"strings"

	"github.com/isthmus/isthmus/adapters"
)

// policy is what a sandbox may reach: a mode, or lists. What lists do not name cannot be reached, and here what is
// denied wins over what is allowed, which is the other way round in our contract.
type policy struct {
	Mode    string            `json:"mode,omitempty"`
	Allow   map[string][]rule `json:"allow,omitempty"`
	Subnets *subnets          `json:"subnets,omitempty"`
}

type subnets struct {
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`
}

// rule puts headers into the requests to a name.
type rule struct {
	Transform []transform `json:"transform"`
}

type transform struct {
	Headers map[string]string `json:"headers"`
}

// everything is the name that all names are.
const everything = "*"

// SetNetwork replaces what a running box may reach.
func (p *place) SetNetwork(ctx context.Context, boxID string, network adapters.Network) error {
	wanted, err := policyOf(network)
	if err != nil {
		return err
	}
	v, err := p.living(ctx, boxID)
	if err != nil {
		return err
	}
	return p.api.send(ctx, request{
		method: http.MethodPost, path: "/v2/sandboxes/sessions/" + v.Session.ID + "/network-policy", body: wanted,
	})
}

// policyOf writes a network in the vendor's words.
func policyOf(n adapters.Network) (policy, error) {
	allowed, names, err := split(n.AllowOut)
	if err != nil {
		return policy{}, err
	}
	denied, deniedNames, err := split(n.DenyOut)
	if err != nil {
		return policy{}, err
	}
	if len(deniedNames) > 0 {
		return policy{}, adapters.Errorf(adapters.KindUnsupported, "Vercel cannot deny names: deny addresses, or allow only the names that are wanted")
	}
	open := n.Internet && !all(denied)
	if len(n.Rules) == 0 && len(allowed) == 0 && len(names) == 0 && (len(denied) == 0 || !open) {
		return policy{Mode: map[bool]string{true: "allow-all", false: "deny-all"}[open]}, nil
	}
	made := policy{Allow: map[string][]rule{}}
	for _, name := range names {
		made.Allow[name] = []rule{}
	}
	if open {
		made.Allow[everything] = []rule{}
	}
	if err := made.inject(n.Rules); err != nil {
		return policy{}, err
	}
	made.Subnets = &subnets{Allow: texts(allowed)}
	if open {
		made.Subnets.Deny = texts(adapters.Subtract(denied, allowed))
	}
	return made, nil
}

// inject adds the headers. The vendor adds them only to requests that are allowed.
func (made policy) inject(rules []adapters.HeaderRule) error {
	for _, one := range rules {
		if !made.allows(one.Host) {
			return adapters.Errorf(adapters.KindUnsupported, "Vercel adds headers to requests that are allowed only: allow %s too", one.Host)
		}
		made.Allow[one.Host] = append(made.Allow[one.Host], rule{Transform: []transform{{Headers: one.Headers}}})
	}
	return nil
}

// allows reports whether a name can be reached.
func (made policy) allows(host string) bool {
	for pattern := range made.Allow {
		suffix, wild := strings.CutPrefix(pattern, everything)
		if pattern == host || wild && strings.HasSuffix(host, suffix) {
			return true
		}
	}
	return false
}

// split tells addresses from names. The vendor's * takes in addresses without a name, so it cannot stand for ours.
func split(list []string) (addresses []netip.Prefix, names []string, err error) {
	for _, one := range list {
		if prefix, err := netip.ParsePrefix(one); err == nil {
			addresses = append(addresses, prefix.Masked())
			continue
		}
		if address, err := netip.ParseAddr(one); err == nil {
			addresses = append(addresses, netip.PrefixFrom(address, address.BitLen()))
			continue
		}
		if one == "" || one == everything || strings.ContainsAny(one, "/: ") {
			return nil, nil, adapters.Errorf(adapters.KindUnsupported, "Vercel knows addresses and names in network rules, and not %q", one)
		}
		names = append(names, one)
	}
	return addresses, names, nil
}

// all reports whether the addresses are all that there are of IPv4: sandboxes have no other.
func all(denied []netip.Prefix) bool {
	return len(adapters.Subtract([]netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}, denied)) == 0
}

func texts(prefixes []netip.Prefix) []string {
	var list []string
	for _, one := range prefixes {
		list = append(list, one.String())
	}
	return list
}
