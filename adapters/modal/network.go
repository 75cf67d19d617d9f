package modal

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"

	"github.com/isthmus/isthmus/adapters"
)

// everywhere is every IPv4 address: Modal's sandboxes have no other way out.
var everywhere = netip.MustParsePrefix("0.0.0.0/0")

// maxRanges bounds an allowlist.
const maxRanges = 1000

// networkAccess is what Modal is told of a network. It knows open, blocked, and a list of what may be reached: what
// may not be reached is the rest of all addresses.
func networkAccess(n adapters.Network) (*pb.NetworkAccess, error) {
	allowed, names, err := split(n.AllowOut)
	if err != nil {
		return nil, err
	}
	denied, _, err := split(n.DenyOut)
	if err != nil {
		return nil, err
	}
	switch {
	case n.Internet && len(denied) == 0: // what is allowed is, as all the rest
		return pb.NetworkAccess_builder{NetworkAccessType: pb.NetworkAccess_OPEN}.Build(), nil
	case !n.Internet && len(allowed)+len(names) == 0:
		return pb.NetworkAccess_builder{NetworkAccessType: pb.NetworkAccess_BLOCKED}.Build(), nil
	case n.Internet:
		allowed = append(without(everywhere, denied), allowed...)
	}
	return allowlist(allowed, names)
}

func allowlist(ranges []netip.Prefix, names []string) (*pb.NetworkAccess, error) {
	if len(ranges) > maxRanges {
		return nil, adapters.Errorf(adapters.KindUnsupported, "the network's lists come to %d ranges of addresses and this pool keeps %d: deny wider ranges", len(ranges), maxRanges)
	}
	list := pb.NetworkAccess_builder{NetworkAccessType: pb.NetworkAccess_ALLOWLIST, AllowedDomains: names}
	for _, r := range ranges {
		list.AllowedCidrs = append(list.AllowedCidrs, r.String())
	}
	return list.Build(), nil
}

// split tells addresses from names. Modal has IPv4 only: an IPv6 address is never reached, so that denying one is
// kept and allowing one is refused by nothing.
func split(entries []string) (ranges []netip.Prefix, names []string, err error) {
	for _, entry := range entries {
		prefix, parseErr := netip.ParsePrefix(entry)
		if parseErr != nil {
			address, addressErr := netip.ParseAddr(entry)
			if addressErr == nil {
				prefix, parseErr = address.Unmap().Prefix(address.Unmap().BitLen())
			}
		}
		switch {
		case parseErr == nil && prefix.Addr().Is4():
			ranges = append(ranges, prefix.Masked())
		case parseErr == nil:
		case strings.ContainsAny(entry, "/: ") || entry == "" || entry == "*":
			return nil, nil, adapters.Errorf(adapters.KindUnsupported, "%q is neither an address nor a name that this pool can keep", entry)
		default:
			names = append(names, entry)
		}
	}
	return ranges, names, nil
}

// without is what is left of a range when others are taken out of it.
func without(whole netip.Prefix, out []netip.Prefix) []netip.Prefix {
	if !slices.ContainsFunc(out, whole.Overlaps) {
		return []netip.Prefix{whole}
	}
	for _, one := range out {
		if one.Overlaps(whole) && one.Bits() <= whole.Bits() {
			return nil // all of it
		}
	}
	lower := netip.PrefixFrom(whole.Addr(), whole.Bits()+1)
	bytes := whole.Addr().As4()
	bytes[whole.Bits()/8] |= 1 << (7 - whole.Bits()%8)
	upper := netip.PrefixFrom(netip.AddrFrom4(bytes), whole.Bits()+1)
	return append(without(lower, out), without(upper, out)...)
}

// SetNetwork replaces what a running box may reach. Modal can do so with a list alone, and not where the network is
// blocked: such a box stays as it is.
func (p *Provider) SetNetwork(ctx context.Context, boxID string, network adapters.Network) error {
	access, err := networkAccess(network)
	if err != nil {
		return err
	}
	policy, err := outboundPolicy(network, access)
	if err != nil {
		return err
	}
	switch access.GetNetworkAccessType() {
	case pb.NetworkAccess_OPEN:
		access, err = allowlist([]netip.Prefix{everywhere}, nil)
	case pb.NetworkAccess_BLOCKED:
		access, err = allowlist(nil, nil)
	}
	if err != nil {
		return err
	}
	r, err := p.routerOf(ctx, boxID)
	if err != nil {
		return p.forgetGone(boxID, err)
	}
	if err := r.setPolicy(ctx, policy); err != nil {
		return p.forgetGone(boxID, err)
	}
	err = r.do(ctx, callTime, func(ctx context.Context) error {
		_, err := r.stub.TaskSetNetworkAccess(ctx, pb.TaskSetNetworkAccessRequest_builder{TaskId: r.known.task, NetworkAccess: access}.Build())
		return err
	})
	switch adapters.KindOf(err) {
	case adapters.KindPrecondition, adapters.KindInvalid:
		return adapters.Wrap(adapters.KindUnsupported, err, "Modal cannot change the network of this sandbox: one that was made without the internet stays so")
	}
	return p.forgetGone(boxID, err)
}
