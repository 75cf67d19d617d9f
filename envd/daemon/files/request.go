package files

import (
	"crypto/subtle"
	"errors"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"github.com/isthmus/isthmus/envd/daemon/filesystem/tree"
	"github.com/isthmus/isthmus/envd/daemon/identity"
	"github.com/isthmus/isthmus/envd/signature"
)

// tokenHeader carries the access token.
const tokenHeader = "X-Access-Token"

// admit checks the access token or the signature of a request to RouteFiles, then finds its user.
func (h *Handler) admit(r *http.Request) (identity.User, *fault) {
	query := r.URL.Query()
	claim, err := signature.FromQuery(r.Method, query)
	if err != nil {
		return identity.User{}, &fault{status: http.StatusBadRequest, message: err.Error(), plain: true}
	}
	if err := authorize(r.Header, claim, h.token()); err != nil {
		return identity.User{}, refuse(http.StatusUnauthorized, "%s", err)
	}
	var name *string
	if query.Has(signature.ParamUser) {
		name = &claim.User
	}
	return h.user(name)
}

// authorize accepts everything when there is no token. A wrong token is not mended by a right signature.
func authorize(header http.Header, claim signature.Claim, token string) error {
	if token == "" {
		return nil
	}
	sent := header.Get(tokenHeader)
	switch {
	case sent == "":
		return claim.Check(token, time.Now())
	case subtle.ConstantTimeCompare([]byte(sent), []byte(token)) != 1:
		return errors.New("access token present in header but does not match")
	}
	return nil
}

// user looks a name up; without one it is the default user.
func (h *Handler) user(name *string) (identity.User, *fault) {
	if name != nil {
		user, err := h.users.Lookup(*name)
		if err != nil {
			return user, refuse(http.StatusUnauthorized, "error looking up user '%s': %s", *name, err)
		}
		return user, nil
	}
	user, err := h.users.Default()
	if err != nil {
		message := err.Error()
		var known *connect.Error
		if errors.As(err, &known) {
			message = known.Message()
		}
		return user, refuse(http.StatusUnauthorized, "%s", message)
	}
	return user, nil
}

// expand makes a path absolute for a user.
func (h *Handler) expand(user identity.User, path string) (string, *fault) {
	absolute, err := user.Expand(path, h.users.Workdir())
	if err != nil {
		return "", refuse(http.StatusBadRequest, "error expanding and resolving path '%s': %s", path, err)
	}
	return absolute, nil
}

func owner(user identity.User) tree.Owner { return tree.Owner{UID: user.UID, GID: user.GID} }
