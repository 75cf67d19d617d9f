// Package files serves file contents over plain HTTP: GET and POST /files, and POST /files/compose.
//
// Contents stream between the connection and the disk and are never held as a whole. As everywhere in the
// daemon, files are opened as root: the user of a request decides what its relative paths mean and who owns
// what is written. /files is open to whoever has the access token or a signature made with it.
package files

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/klauspost/compress/gzip"

	"github.com/isthmus/isthmus/envd/daemon/filesystem/tree"
	"github.com/isthmus/isthmus/envd/daemon/identity"
)

// The routes that a Handler serves.
const (
	RouteFiles   = "/files"
	RouteCompose = "/files/compose"
)

// bufferSize is how much of a file is moved at once. Contents up to this size are written by one call, which
// those who watch the file see as one event.
const bufferSize = 128 << 10

// Handler serves RouteFiles and RouteCompose. Before it, the daemon has checked the access token on
// RouteCompose; on RouteFiles the handler checks it, because there a signature does as well.
type Handler struct {
	users *identity.Resolver
	tree  *tree.Tree
	token func() string

	buffers sync.Pool
	zippers sync.Pool
}

// New returns the handler. The token is asked for at each request, because it may be set later; empty means
// that everything is open.
func New(users *identity.Resolver, tree *tree.Tree, token func() string) *Handler {
	h := &Handler{users: users, tree: tree, token: token}
	h.buffers.New = func() any { b := make([]byte, bufferSize); return &b }
	h.zippers.New = func() any {
		// The level is valid, so there is no error; speed counts, for the other end is usually near.
		z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed)
		return z
	}
	return h
}

// ServeHTTP answers both routes.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == RouteFiles && r.Method == http.MethodGet:
		answer(w, h.download(w, r))
	case r.URL.Path == RouteFiles && r.Method == http.MethodPost:
		answer(w, h.upload(w, r))
	case r.URL.Path == RouteFiles:
		notAllowed(w, http.MethodGet, http.MethodPost)
	case r.URL.Path == RouteCompose && r.Method == http.MethodPost:
		answer(w, h.compose(w, r))
	case r.URL.Path == RouteCompose:
		notAllowed(w, http.MethodPost)
	default:
		http.NotFound(w, r)
	}
}

// fault is an error with the status that a client gets.
type fault struct {
	status  int
	message string
	// plain is for the one answer that is not JSON.
	plain bool
}

// Error is the message alone.
func (f *fault) Error() string { return f.message }

func refuse(status int, format string, args ...any) *fault {
	return &fault{status: status, message: fmt.Sprintf(format, args...)}
}

// answer tells a client what went wrong, if anything did.
func answer(w http.ResponseWriter, f *fault) {
	switch {
	case f == nil:
	case f.plain:
		http.Error(w, f.message, f.status)
	default:
		w.Header().Set("X-Content-Type-Options", "nosniff")
		reply(w, f.status, struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		}{f.status, f.message})
	}
}

// reply writes a JSON answer. That the client is gone is nothing to tell anybody.
func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func notAllowed(w http.ResponseWriter, methods ...string) {
	for _, method := range methods {
		w.Header().Add("Allow", method)
	}
	w.WriteHeader(http.StatusMethodNotAllowed)
}
