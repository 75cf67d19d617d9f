package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// Policy is what a box may reach.
type Policy struct {
	// Internet is what holds for public addresses that no list names; false: they are refused.
	Internet bool
	// Allow and Deny are lists of public addresses. Where both have one it is allowed; 0.0.0.0/0 stands for IPv6 too.
	Allow, Deny []netip.Prefix
	// AllowNames are names that are allowed whatever Internet and Deny say, patterns such as *.example.com, and *. A name
	// is what the resolver here answered for it; TLS and HTTP must name it too. It holds for TCP.
	AllowNames []string
	// AllowPrivate are private ranges that the box may reach besides public addresses. Each lies within
	// 10.0.0.0/8, 100.64.0.0/10, 172.16.0.0/12, 192.168.0.0/16, 198.18.0.0/15 or fc00::/7. The host's own
	// addresses and metadata services stay refused.
	AllowPrivate []netip.Prefix
	// Resolvers answer the box's name look-ups, tried in order; none means those of the host.
	Resolvers []netip.AddrPort
	// Interceptor takes over connections that are allowed, by the host that they name; nil: all pass as they are.
	Interceptor Interceptor
}

// errRefused is the answer to a destination that the policy does not allow.
var errRefused = errors.New("the egress policy refuses this destination")

// never lists what no policy can allow.
func never() []string {
	return []string{
		"0.0.0.0/8", "127.0.0.0/8", "192.0.0.0/24", "192.88.99.0/24", "224.0.0.0/4", "240.0.0.0/4",
		"10.0.2.3/32", "10.0.2.100/32", // the box itself
		"169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32", "fd00:ec2::/32", "fd20:ce::254/128", // metadata
		"::/96", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", // IPv4 in disguise, discard
		"2001::/32", "2002::/16", "fe80::/10", "fec0::/10", "ff00::/8", // tunnels to IPv4, link, multicast
	}
}

// private lists what only AllowPrivate can allow.
func private() []string {
	return []string{"10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "198.18.0.0/15", "fc00::/7"}
}

// Validate returns an error that names the first prefix which may not be allowed, or resolver which is none.
func (p Policy) Validate() error {
	for _, a := range p.AllowPrivate {
		if !a.IsValid() || !withinPrivate(a) {
			return fmt.Errorf("%v is not a private range: allow ranges within %v only", a, private())
		}
	}
	for _, a := range append(slices.Clone(p.Allow), p.Deny...) {
		if !a.IsValid() {
			return fmt.Errorf("%v is not a range of addresses", a)
		}
	}
	for _, name := range p.AllowNames {
		if !ValidName(name) {
			return fmt.Errorf("%q is not the name of a host, *. before one, or *", name)
		}
	}
	for _, r := range p.Resolvers {
		if !r.IsValid() || r.Port() == 0 {
			return fmt.Errorf("%v is not the address and port of a resolver", r)
		}
	}
	return nil
}

// verdict is what the policy says of an address.
type verdict int

const (
	refused verdict = iota
	byName          // as part of an allowed name only
	allowed
)

// decide decides by address alone. The host's own addresses are a matter of its routes: see reachable.
func (p *Policy) decide(a netip.Addr) verdict {
	if !a.IsValid() || a.Zone() != "" || contains(never(), a) {
		return refused
	}
	if contains(private(), a) && !slices.ContainsFunc(p.AllowPrivate, func(r netip.Prefix) bool { return r.Contains(a) }) {
		return refused
	}
	switch {
	case listed(p.Allow, a), p.Internet && !listed(p.Deny, a):
		return allowed
	case len(p.AllowNames) > 0:
		return byName
	}
	return refused
}

// everywhere is the range that stands for all addresses.
var everywhere = netip.PrefixFrom(netip.IPv4Unspecified(), 0)

func listed(list []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(list, func(r netip.Prefix) bool { return r == everywhere || r.Contains(a) })
}

// allowsName reports whether a name is allowed by itself.
func (p *Policy) allowsName(name string) bool {
	return name != "" && slices.ContainsFunc(p.AllowNames, func(pattern string) bool { return matches(pattern, name) })
}

// resolves reports whether a name may be looked up: any where the internet is open. Where only lists say what may be
// reached, a look-up of another name would itself be a way out.
func (p *Policy) resolves(name string) bool {
	return p.Internet && !slices.Contains(p.Deny, everywhere) || p.allowsName(name)
}

func contains(prefixes []string, a netip.Addr) bool {
	for _, s := range prefixes {
		if netip.MustParsePrefix(s).Contains(a) {
			return true
		}
	}
	return false
}

func withinPrivate(a netip.Prefix) bool {
	for _, s := range private() {
		if r := netip.MustParsePrefix(s); r.Contains(a.Addr()) && r.Bits() <= a.Bits() {
			return true
		}
	}
	return false
}
