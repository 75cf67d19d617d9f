package adapters

import "net/netip"

// Subtract returns prefixes for the addresses of from that lie in none of without. Places differ in which of their
// lists wins; with it an adapter states one list without the other.
func Subtract(from, without []netip.Prefix) []netip.Prefix {
	left := from
	for _, hole := range without {
		var next []netip.Prefix
		for _, one := range left {
			next = append(next, carve(one.Masked(), hole.Masked())...)
		}
		left = next
	}
	return left
}

// carve splits a prefix in two until the hole is a part of its own, and leaves that out.
func carve(one, hole netip.Prefix) []netip.Prefix {
	switch {
	case !one.Overlaps(hole):
		return []netip.Prefix{one}
	case hole.Bits() <= one.Bits():
		return nil
	}
	low := netip.PrefixFrom(one.Addr(), one.Bits()+1)
	bytes := one.Addr().AsSlice()
	bytes[one.Bits()/8] |= 0x80 >> (one.Bits() % 8)
	address, _ := netip.AddrFromSlice(bytes)
	high := netip.PrefixFrom(address, one.Bits()+1)
	return append(carve(low, hole), carve(high, hole)...)
}
