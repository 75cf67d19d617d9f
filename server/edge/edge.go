// Package edge stands in front of everything on the one public listener: it decides, before any route, which
// part of Isthmus a request is for, and hands it over untouched. No path is cleaned and nothing is redirected
// here, because what a sandbox serves below its paths is the sandbox's own.
package edge

import (
	"encoding/json"
	"net/http"
)

// Gateway carries requests into sandboxes.
type Gateway interface {
	// ServeSandbox answers a request to a port of a sandbox.
	ServeSandbox(w http.ResponseWriter, r *http.Request, sandboxID string, port uint16)
	// ServeSigned answers a signed file URL, whose sandbox is yet to be found.
	ServeSigned(w http.ResponseWriter, r *http.Request)
}

// Edge is the handler of the public listener.
type Edge struct {
	domains []string
	gateway Gateway
	control http.Handler
}

// New makes the handler. Domains are those below which sandboxes have their host names, with or without a
// port; control answers whatever addresses no sandbox.
func New(domains []string, gateway Gateway, control http.Handler) *Edge {
	return &Edge{domains: domains, gateway: gateway, control: control}
}

// ServeHTTP decides the address and hands the request over.
func (e *Edge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	address, err := Decide(e.domains, r)
	switch {
	case err != nil:
		refuse(w, err)
	case address.Kind == Sandbox:
		e.gateway.ServeSandbox(w, r, address.SandboxID, address.Port)
	case address.Kind == Signed:
		e.gateway.ServeSigned(w, r)
	case address.Kind == Preflight:
		grant(w, r)
	default:
		e.control.ServeHTTP(w, r)
	}
}

// refuse answers an address that makes no sense. Any origin may read it: it says nothing but what was sent.
func refuse(w http.ResponseWriter, err error) {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Access-Control-Allow-Origin", "*")
	w.WriteHeader(http.StatusBadRequest)
	answer := struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}{http.StatusBadRequest, err.Error()}
	_ = json.NewEncoder(w).Encode(answer) // a client that has gone gets no answer
}
