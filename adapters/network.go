package adapters

import (
	"context"
	"maps"
	"slices"
)

// Network is what a box may reach. Where AllowOut and DenyOut disagree, AllowOut wins; what neither names follows
// Internet. A place that cannot keep one of them refuses the create with KindUnsupported.
type Network struct {
	// Internet is true when the box may open connections to public addresses.
	Internet bool
	// AllowOut are addresses, CIDRs, names, patterns such as *.example.com, and * for any name; DenyOut
	// addresses and CIDRs.
	AllowOut []string
	DenyOut  []string
	// Rules add headers to outgoing requests, by the name of the host.
	Rules []HeaderRule
	// PrivatePorts asks a Native provider to guard every port but envd's by a token of its own, RequestHost
	// to replace the Host towards applications (it may hold ${PORT}). For other providers the gateway does both.
	PrivatePorts bool
	RequestHost  string
}

// HeaderRule adds headers to every request for one host. Its values are secrets.
type HeaderRule struct {
	Host    string
	Headers map[string]string
}

// Equal reports whether two networks are the same in everything.
func (n Network) Equal(other Network) bool {
	sameRule := func(a, b HeaderRule) bool { return a.Host == b.Host && maps.Equal(a.Headers, b.Headers) }
	return n.Internet == other.Internet && n.PrivatePorts == other.PrivatePorts && n.RequestHost == other.RequestHost &&
		slices.Equal(n.AllowOut, other.AllowOut) && slices.Equal(n.DenyOut, other.DenyOut) &&
		slices.EqualFunc(n.Rules, other.Rules, sameRule)
}

// Networker is the power to change what a running box may reach, FeatureLiveNetwork.
type Networker interface {
	// SetNetwork replaces the box's rules as a whole. When it returns, new connections follow them. KindUnsupported
	// when the place cannot keep one of them, and then nothing was changed. Idempotent.
	SetNetwork(ctx context.Context, boxID string, network Network) error
}
