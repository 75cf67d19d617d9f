//go:build linux

package vercel

import (
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
)

// routed is what a subdomain leads to.
type routed struct {
	sandbox *sandbox
	port    int
}

// setRoutes gives each declared port a name; ports that stay keep theirs. mu is held.
func (s *Server) setRoutes(b *sandbox) {
	had := map[int]Route{}
	for _, route := range b.routes {
		had[route.Port] = route
		delete(s.routes, route.Subdomain)
	}
	b.routes = nil
	for _, port := range b.ports {
		route, kept := had[port]
		if !kept {
			subdomain := strings.ToLower(newID("sb-"))
			route = Route{URL: s.config.Scheme + "://" + subdomain + "." + s.config.Domain, Subdomain: subdomain, Port: port}
		}
		b.routes = append(b.routes, route)
		s.routes[route.Subdomain] = routed{b, port}
	}
}

// dropRoutes takes the names away; mu is held.
func (s *Server) dropRoutes(b *sandbox) {
	for _, route := range b.routes {
		delete(s.routes, route.Subdomain)
	}
}

// subdomain is the name of a port in a Host.
func (s *Server) subdomain(host string) (string, bool) {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	domain := s.config.Domain
	if name, _, err := net.SplitHostPort(domain); err == nil {
		domain = name
	}
	return strings.CutSuffix(host, "."+domain)
}

// servePort carries a request to a port of a running session. Nothing guards it.
func (s *Server) servePort(w http.ResponseWriter, r *http.Request, subdomain string) {
	s.mu.Lock()
	to, known := s.routes[subdomain]
	var one *session
	if known && to.sandbox.current != nil && to.sandbox.current.info.Status == statusRunning {
		one = to.sandbox.current
	}
	s.mu.Unlock()
	if one == nil {
		http.Error(w, "SANDBOX_NOT_FOUND", http.StatusNotFound)
		return
	}
	one.box.ServePort(w, r, uint16(to.port), func(p *httputil.ProxyRequest) { p.SetXForwarded() },
		func(w http.ResponseWriter, _ *http.Request, _ error) {
			http.Error(w, "SANDBOX_NOT_LISTENING", http.StatusBadGateway)
		})
}
