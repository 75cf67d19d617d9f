package daemon

import (
	"crypto/subtle"
	"encoding/json"
	"net/http"

	"connectrpc.com/connect"

	"github.com/isthmus/isthmus/envd"
)

// headerToken carries the clients' token.
const headerToken = "X-Access-Token"

// noToken lists the method and path pairs that a client without a token may call: /files checks a signature
// in its place.
var noToken = map[[2]string]bool{
	{http.MethodGet, "/health"}: true,
	{http.MethodGet, "/files"}:  true,
	{http.MethodPost, "/files"}: true,
}

// handler puts the checks in upstream's order before the routes: CORS, who may reach the daemon, the clients'
// token, the request's user.
func (d *Daemon) handler(facade bool) http.Handler {
	routes := d.router()
	errors := connect.NewErrorWriter()
	return cors(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := facade && same(r.Header.Get(envd.HeaderControl), d.settings.control)
		transport := d.settings.transport == "" || same(r.Header.Get(envd.HeaderTransport), d.settings.transport)
		switch {
		case facade && !transport && !control:
			writeError(w, http.StatusUnauthorized, "this address is for Isthmus alone: use the sandbox's URL")
		case envd.Internal(r.URL.Path):
			d.guardInternal(w, r, control)
		case !d.tokenFits(r):
			writeError(w, http.StatusUnauthorized, "unauthorized access, please provide a valid access token or method signing if supported")
		default:
			asUser, err := d.users.Attach(r)
			if err != nil {
				_ = errors.Write(w, r, err) // The client is gone then.
				return
			}
			routes.ServeHTTP(w, asUser)
		}
	}))
}

// guardInternal lets nobody but the facade see that there are internal routes.
func (d *Daemon) guardInternal(w http.ResponseWriter, r *http.Request, control bool) {
	if !control {
		http.NotFound(w, r)
		return
	}
	d.serveInternal(w, r)
}

// tokenFits tells whether the client may call this route. A wrong token on a route that needs none is for the
// route to judge.
func (d *Daemon) tokenFits(r *http.Request) bool {
	token := d.settings.accessToken()
	return token == "" || noToken[[2]string{r.Method, r.URL.Path}] || same(r.Header.Get(headerToken), token)
}

// same compares secrets in constant time; an empty secret is never the same.
func same(given, secret string) bool {
	return secret != "" && subtle.ConstantTimeCompare([]byte(given), []byte(secret)) == 1
}

// writeError answers with a JSON body of upstream's form.
func writeError(w http.ResponseWriter, status int, message string) {
	body, err := json.Marshal(struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}{status, message})
	if err != nil {
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
