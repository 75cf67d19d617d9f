package identity

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"connectrpc.com/connect"
)

// Resolver knows the sandbox's users and its two defaults, which the facade may change while the daemon runs.
// It is safe for use by several goroutines.
type Resolver struct {
	*Directory

	mu      sync.RWMutex
	user    string
	workdir string
}

// NewResolver looks up in a directory, with the default user's name and the default folder (empty: the home).
func NewResolver(d *Directory, user, workdir string) *Resolver {
	return &Resolver{Directory: d, user: user, workdir: workdir}
}

// SetDefaults changes the defaults; an empty value keeps what there was.
func (r *Resolver) SetDefaults(user, workdir string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if user != "" {
		r.user = user
	}
	if workdir != "" {
		r.workdir = workdir
	}
}

// Workdir is what an empty path or cwd means; empty: the user's home. Pass it to User.Expand.
func (r *Resolver) Workdir() string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.workdir
}

// Default is the user of requests that name none. The error is a Connect error, unauthenticated.
func (r *Resolver) Default() (User, error) {
	r.mu.RLock()
	name := r.user
	r.mu.RUnlock()
	if name == "" {
		return User{}, connect.NewError(connect.CodeUnauthenticated, fmt.Errorf("no user specified"))
	}
	u, err := r.Lookup(name)
	if err != nil {
		return User{}, connect.NewError(connect.CodeUnauthenticated, fmt.Errorf("invalid default user: '%s'", name))
	}
	return u, nil
}

// caller is what the context of a request carries: its own user, or the resolver when it named none. The
// default is looked up only when it is asked for, so that a broken default fails no route that needs no user.
type caller struct {
	user     *User
	resolver *Resolver
}

type contextKey struct{}

// Attach puts the request's user into its context. The error is a Connect error, unauthenticated, for a Basic
// user that does not exist; every route refuses such a request.
func (r *Resolver) Attach(req *http.Request) (*http.Request, error) {
	c := caller{resolver: r}
	if name, _, ok := req.BasicAuth(); ok {
		u, err := r.Lookup(name)
		if err != nil {
			return nil, connect.NewError(connect.CodeUnauthenticated, fmt.Errorf("invalid username: '%s'", name))
		}
		c.user = &u
	}
	return req.WithContext(context.WithValue(req.Context(), contextKey{}, c)), nil
}

// From answers as which user the request of this context acts: the one that it named, else the default. The
// error is a Connect error, unauthenticated, ready to be returned from an RPC.
func From(ctx context.Context) (User, error) {
	c, ok := ctx.Value(contextKey{}).(caller)
	switch {
	case !ok:
		return User{}, connect.NewError(connect.CodeUnauthenticated, fmt.Errorf("no user specified"))
	case c.user != nil:
		return *c.user, nil
	}
	return c.resolver.Default()
}
