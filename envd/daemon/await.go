package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/isthmus/isthmus/envd"
)

// ErrDeadline says that a daemon's life ended before it was configured.
var ErrDeadline = errors.New("the deadline passed before the daemon was configured")

// Await answers on a listener until the facade has told the configuration, and returns it; the listener is open
// then, for Serve. Only who knows the secret of this control sum (envd.ControlSum) can tell, and move the deadline,
// at which waiting ends. Everybody else is told that the daemon is not ready.
func Await(ctx context.Context, l *net.TCPListener, controlSum string, deadline time.Time) (envd.Config, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := &waiting{sum: controlSum, deadline: newDeadline(deadline), told: make(chan envd.Config, 1)}
	var timer sync.WaitGroup
	timer.Go(func() { w.deadline.run(ctx, func() { cancel(ErrDeadline) }) })
	defer timer.Wait()
	defer cancel(nil)

	server := &http.Server{Handler: w, ReadHeaderTimeout: headerLimit, IdleTimeout: headerLimit}
	served := make(chan error, 1)
	go func() { served <- server.Serve(lent{l}) }()
	var config envd.Config
	var err error
	select {
	case config = <-w.told:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case err = <-served:
		return config, fmt.Errorf("wait for the configuration: %w", err)
	}
	closing, stop := context.WithTimeout(context.WithoutCancel(ctx), headerLimit)
	defer stop()
	if server.Shutdown(closing) != nil { // it waits for the answer to whoever told us
		_ = server.Close()
	}
	<-served
	return config, errors.Join(err, l.SetDeadline(time.Time{}))
}

// waiting is a daemon that has no configuration yet.
type waiting struct {
	sum      string
	deadline *deadline
	told     chan envd.Config
	once     sync.Mutex
	done     bool
}

// ServeHTTP closes each connection: the next one belongs to the daemon that is configured.
func (w *waiting) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	out.Header().Set("Connection", "close")
	knows := same(envd.ControlSum(r.Header.Get(envd.HeaderControl)), w.sum)
	switch {
	case !knows:
		writeError(out, http.StatusServiceUnavailable, "this sandbox is not ready")
	case r.URL.Path == envd.RouteDeadline:
		(&Daemon{deadline: w.deadline}).serveDeadline(out, r)
	case r.URL.Path == envd.RouteConfigure:
		w.configure(out, r)
	default:
		writeError(out, http.StatusServiceUnavailable, "this sandbox is not configured")
	}
}

func (w *waiting) configure(out http.ResponseWriter, r *http.Request) {
	if !allow(out, r, http.MethodPut) {
		return
	}
	var config envd.Config
	decoder := json.NewDecoder(http.MaxBytesReader(out, r.Body, maxBody))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&config); err != nil || config.Transport == "" || config.Control == "" {
		writeError(out, http.StatusBadRequest, "the body must be the configuration of the daemon, with its secrets")
		return
	}
	w.once.Lock()
	defer w.once.Unlock()
	if w.done {
		writeError(out, http.StatusConflict, "this sandbox is configured already")
		return
	}
	w.done = true
	out.WriteHeader(http.StatusNoContent)
	w.told <- config
}

// lent is a listener that stays open when a server closes it: it only stops accepting.
type lent struct{ *net.TCPListener }

// Close ends Accept.
func (l lent) Close() error { return l.SetDeadline(time.Unix(1, 0)) }
