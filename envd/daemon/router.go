package daemon

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/envd/daemon/files"
	"github.com/isthmus/isthmus/envd/filesystem/filesystemconnect"
	"github.com/isthmus/isthmus/envd/process/processconnect"
)

// headerTimeout is a call's time limit in milliseconds.
const headerTimeout = "Connect-Timeout-Ms"

// router is every route of one listener. It is a plain switch: a ServeMux would redirect paths with // and ..,
// which upstream answers with 404.
type router struct {
	*Daemon
	process, filesystem, contents http.Handler
}

func (d *Daemon) router() *router {
	r := &router{Daemon: d}
	options := rpcOptions()
	_, r.process = processconnect.NewProcessHandler(d.process, options...)
	_, r.filesystem = filesystemconnect.NewFilesystemHandler(d.files, options...)
	r.process, r.filesystem = d.messages.guard(r.process), d.messages.guard(r.filesystem)
	r.contents = files.New(d.users, d.tree, d.settings.accessToken)
	return r
}

// ServeHTTP answers what clients may call.
func (d *router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	switch {
	case strings.HasPrefix(path, "/"+processconnect.ProcessName+"/"):
		d.process.ServeHTTP(w, expireNegative(r))
	case strings.HasPrefix(path, "/"+filesystemconnect.FilesystemName+"/"):
		d.filesystem.ServeHTTP(w, expireNegative(r))
	case path == files.RouteFiles, path == files.RouteCompose:
		d.contents.ServeHTTP(w, r)
	case path == "/health":
		d.serveHealth(w, r)
	case path == "/metrics":
		d.serveMetrics(w, r)
	case path == "/envs":
		d.serveEnvs(w, r)
	default:
		http.NotFound(w, r)
	}
}

// expireNegative makes a negative time limit one that has passed, as upstream's older Connect library does;
// the present one refuses it.
func expireNegative(r *http.Request) *http.Request {
	if _, err := strconv.ParseInt(r.Header.Get(headerTimeout), 10, 64); err == nil && r.Header.Get(headerTimeout)[0] == '-' {
		r.Header.Set(headerTimeout, "0")
	}
	return r
}

// serveInternal answers what only the facade may call.
func (d *Daemon) serveInternal(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case path == envd.RouteInit:
		d.serveInit(w, r)
	case path == envd.RouteDeadline:
		d.serveDeadline(w, r)
	case path == envd.RouteJournal:
		d.serveJournal(w, r)
	case path == envd.RouteUsage:
		d.serveUsage(w, r)
	case path == envd.RouteReach:
		d.serveReach(w, r)
	case path == envd.RouteKeep && d.options.Keep != nil:
		d.serveKeep(w, r)
	case strings.HasPrefix(path, envd.RouteTunnel):
		d.tunnel.ServeHTTP(w, r)
	default:
		http.NotFound(w, r)
	}
}

// allow answers 405 for any other method.
func allow(w http.ResponseWriter, r *http.Request, methods ...string) bool {
	if slices.Contains(methods, r.Method) {
		return true
	}
	for _, m := range methods {
		w.Header().Add("Allow", m)
	}
	w.WriteHeader(http.StatusMethodNotAllowed)
	return false
}
