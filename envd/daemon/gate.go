package daemon

import (
	"net/http"
	"sync"
)

// gate counts the requests that are being answered, so that the daemon ends only after the last of them:
// closing an HTTP server does not wait for its handlers.
type gate struct {
	mu     sync.Mutex
	shut   bool
	inside int
	empty  chan struct{}
}

func newGate() *gate { return &gate{empty: make(chan struct{})} }

func (g *gate) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.enter() {
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		defer g.leave()
		next.ServeHTTP(w, r)
	})
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return false
	}
	g.inside++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.shut && g.inside == 0 {
		close(g.empty)
	}
}

// close lets nobody in any more and waits until everybody is out. It is called once.
func (g *gate) close() {
	g.mu.Lock()
	g.shut = true
	if g.inside == 0 {
		close(g.empty)
	}
	g.mu.Unlock()
	<-g.empty
}
