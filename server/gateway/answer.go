package gateway

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/isthmus/isthmus/envd"
)

// The texts by which SDKs and people know these answers.
const (
	messageGone     = "The sandbox was not found"
	messagePort     = "The sandbox is running but port is not open"
	messageInternal = "This endpoint is reserved for the E2B control plane and is not reachable through the sandbox URL"
)

// target is what a request is for.
type target struct {
	sandboxID string
	port      uint16
	rpc       rpc // how the client expects errors
}

// answer is the JSON body of what the gateway says itself.
type answer struct {
	SandboxID string `json:"sandboxId,omitempty"`
	Message   string `json:"message"`
	Path      string `json:"path,omitempty"`
	Port      uint16 `json:"port,omitempty"`
	Code      int    `json:"code"`
}

// gone answers for a sandbox that is not there, on RPC paths as well: a 502 is how SDKs know that.
func (t target) gone(w http.ResponseWriter, r *http.Request) {
	t.refuse(w, r, http.StatusBadGateway, messageGone)
}

// portClosed answers for a port on which nothing listens.
func (t target) portClosed(w http.ResponseWriter, r *http.Request) {
	write(w, r, answer{SandboxID: t.sandboxID, Message: messagePort, Port: t.port, Code: http.StatusBadGateway})
}

// refuse answers with a status and a message about the sandbox.
func (t target) refuse(w http.ResponseWriter, r *http.Request, status int, message string) {
	write(w, r, answer{SandboxID: t.sandboxID, Message: message, Code: status})
}

// refuseInternal answers for a route that belongs to the facade, whatever the method.
func refuseInternal(w http.ResponseWriter, r *http.Request) {
	writeBody(w, r, answer{Message: messageInternal, Path: cleaned(r.URL.Path), Code: http.StatusNotFound})
}

// write answers; a browser's preflight is let through, so that the page may send the request itself and read
// what is wrong.
func write(w http.ResponseWriter, r *http.Request, a answer) {
	if method := r.Header.Get("Access-Control-Request-Method"); r.Method == http.MethodOptions && method != "" {
		allow(w.Header(), method, r.Header.Get("Access-Control-Request-Headers"))
		w.WriteHeader(http.StatusNoContent)
		return
	}
	writeBody(w, r, a)
}

func writeBody(w http.ResponseWriter, r *http.Request, a answer) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Add("Vary", "Accept, Sec-Fetch-Mode, User-Agent")
	answerUnread(w, r)
	if navigates(r) {
		writePage(w, a)
		return
	}
	h.Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(a.Code)
	_ = json.NewEncoder(w).Encode(a) // a client that has gone gets no answer
}

// allow grants a preflight for a short time: the sandbox may come to answer for itself.
func allow(h http.Header, method, headers string) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Methods", method)
	if headers != "" {
		h.Set("Access-Control-Allow-Headers", headers)
	}
	h.Set("Access-Control-Max-Age", "5")
	h.Add("Vary", "Origin")
}

// rpc is how a call to one of the daemon's services expects its errors.
type rpc int

const (
	notRPC rpc = iota
	unaryRPC
	streamRPC
)

// rpcOf tells by path and content type, as Connect does.
func rpcOf(r *http.Request, port uint16) rpc {
	service := strings.HasPrefix(r.URL.Path, "/process.Process/") || strings.HasPrefix(r.URL.Path, "/filesystem.Filesystem/")
	if port != envd.Port || !service {
		return notRPC
	}
	contentType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	switch strings.TrimSpace(strings.ToLower(contentType)) {
	case "application/json", "application/proto":
		return unaryRPC
	case "application/connect+json", "application/connect+proto":
		return streamRPC
	}
	return notRPC
}
