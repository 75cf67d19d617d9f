// Package admin is the operator's side of Isthmus: sandboxes of all teams, teams, keys and backups, as a small
// JSON API under /isthmus/. It is served on a unix socket in the data folder, where the permission to open
// the socket is the credential, and on the operator's listener, where a token is.
package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/translate"
)

// tokenHeader carries the admin token on the operator's listener.
const tokenHeader = "X-Admin-Token"

// maxBody is the largest request body in bytes; they are all tiny.
const maxBody = 64 << 10

// Fleet is what administration needs of the fleet.
type Fleet interface {
	// All returns every sandbox of every team, in whatever state.
	All(ctx context.Context) ([]store.Sandbox, error)
	// KillAny ends a sandbox and returns when nothing of it is left.
	KillAny(ctx context.Context, id string) error
}

// Config is what administration works with.
type Config struct {
	Store *store.Store
	Fleet Fleet
	// Placement is nil where no server runs.
	Placement Placement
	// DataDir holds the file of the first API key.
	DataDir string
	// Environment is what clients need to find this Isthmus; it holds an API key and is shown on the socket only.
	Environment Environment
	Log         *slog.Logger
}

// Environment is what clients need to find this Isthmus.
type Environment struct {
	APIURL     string `json:"apiURL"`
	SandboxURL string `json:"sandboxURL"`
	Domain     string `json:"domain"`
	// Authority and Bundle are files with the authority that clients must trust: alone, and together with
	// the system's. Empty when a public authority, or none, is in use.
	Authority string `json:"authority,omitempty"`
	Bundle    string `json:"bundle,omitempty"`
	// APIKey is empty when the process does not know any key in clear.
	APIKey string `json:"apiKey,omitempty"`
}

// Admin serves the operations.
type Admin struct {
	config Config
}

// New makes an Admin.
func New(config Config) *Admin {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	return &Admin{config}
}

// Socket is the handler for whoever may open the socket.
func (a *Admin) Socket() http.Handler {
	return serve(append(a.routes(), route{"GET /isthmus/env", a.environment}))
}

// Remote is the handler for whoever knows the token. Without a token it refuses everybody.
func (a *Admin) Remote(token string) http.Handler {
	mux := serve(a.routes())
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := sha256.Sum256([]byte(r.Header.Get(tokenHeader)))
		switch {
		case token == "":
			refuse(w, http.StatusForbidden, "administration is off: start Isthmus with ISTHMUS_ADMIN_TOKEN set")
		case subtle.ConstantTimeCompare(got[:], want[:]) != 1:
			refuse(w, http.StatusUnauthorized, "the header "+tokenHeader+" is missing or wrong")
		default:
			mux.ServeHTTP(w, r)
		}
	})
}

// route is one operation: its method and path, and what answers it.
type route struct {
	pattern string
	handler http.HandlerFunc
}

// routes are the operations of openapi/isthmus.yaml, but that of the socket alone.
func (a *Admin) routes() []route {
	routes := []route{
		{"GET /isthmus/sandboxes", a.listSandboxes},
		{"DELETE /isthmus/sandboxes", a.killAll},
		{"DELETE /isthmus/sandboxes/{id}", a.killSandbox},
		{"GET /isthmus/teams", a.listTeams},
		{"POST /isthmus/teams", a.createTeam},
		{"GET /isthmus/keys", a.listKeys},
		{"POST /isthmus/keys", a.createKey},
		{"DELETE /isthmus/keys/{id}", a.revokeKey},
		{"GET /isthmus/backup", a.backup},
	}
	if a.config.Placement == nil {
		return routes
	}
	return append(routes,
		route{"GET /isthmus/sandboxes/{id}/placement", a.showPlacement},
		route{"POST /isthmus/placement/plan", a.plan},
		route{"GET /isthmus/pools", a.listPools},
		route{"POST /isthmus/reload", a.reload},
	)
}

func serve(routes []route) *http.ServeMux {
	mux := http.NewServeMux()
	for _, one := range routes {
		mux.HandleFunc(one.pattern, one.handler)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, "there is nothing at "+r.Method+" "+r.URL.Path)
	})
	return mux
}

func (a *Admin) environment(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, a.config.Environment)
}

// answer writes JSON.
func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that has gone gets no answer
}

// failure is the body of every error.
type failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func refuse(w http.ResponseWriter, status int, message string) {
	answer(w, status, failure{status, message})
}

// fail answers an error of the fleet or the store.
func (a *Admin) fail(w http.ResponseWriter, r *http.Request, err error) {
	var typed *adapters.Error
	switch {
	case errors.As(err, &typed):
		f := translate.FailureOf(err)
		refuse(w, f.Status, f.Message)
	case errors.Is(err, store.ErrNotFound):
		refuse(w, http.StatusNotFound, "there is no such record: the list says which there are")
	case errors.Is(err, store.ErrExists):
		refuse(w, http.StatusConflict, "it exists already")
	default:
		a.config.Log.Error("administration failed", "method", r.Method, "path", r.URL.Path, "err", err)
		refuse(w, http.StatusInternalServerError, "it failed: the log of Isthmus says why")
	}
}

// read decodes a small JSON body.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		refuse(w, http.StatusBadRequest, "the body is not the JSON that was expected: "+err.Error())
		return false
	}
	return true
}
