package gateway

import (
	"net"
	"net/http"
	"net/netip"

	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/envd/signature"
)

// Limits on signatures that fit no sandbox, for each client address. One that fits costs nothing and is always
// served, so that nobody behind an address suffers from another one who guesses there.
const (
	missesPerSecond  = 5
	missesAtOnce     = 50
	limitedAddresses = 4096
)

// ServeSigned carries a signed file URL to the sandbox whose token makes the signature. A sandbox without a
// token has no signed URLs, because anybody could make them.
func (g *Gateway) ServeSigned(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodOptions {
		write(w, r, answer{Message: "only GET and POST are signed", Code: http.StatusMethodNotAllowed})
		return
	}
	claim, err := signature.FromQuery(r.Method, r.URL.Query())
	if err != nil {
		write(w, r, answer{Message: err.Error(), Code: http.StatusBadRequest})
		return
	}
	sandboxID, found := g.sandboxes.Match(r.Context(), func(_, token string) bool {
		return token != "" && claim.Matches(token)
	})
	if !found {
		g.refuseSignature(w, r)
		return
	}
	g.ServeSandbox(w, r, sandboxID, envd.Port)
}

// refuseSignature answers a miss, and counts it.
func (g *Gateway) refuseSignature(w http.ResponseWriter, r *http.Request) {
	address := addressOf(r.RemoteAddr)
	if !g.misses.allows(address) {
		w.Header().Set("Retry-After", "1")
		write(w, r, answer{Message: "too many wrong signatures from this address: wait a second", Code: http.StatusTooManyRequests})
		return
	}
	g.misses.note(address)
	write(w, r, answer{Message: signature.ErrInvalid.Error(), Code: http.StatusUnauthorized})
}

// addressOf returns whom to count a request for: the address, or the network of an IPv6 address, because one
// client has all of that. A client without an address is counted with all of its kind.
func addressOf(remote string) netip.Addr {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}
	}
	address = address.Unmap().WithZone("")
	if address.Is6() {
		if network, err := address.Prefix(64); err == nil {
			return network.Addr()
		}
	}
	return address
}
