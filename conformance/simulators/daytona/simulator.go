// Package daytona is a simulated Daytona: a server of its API v0, of the toolbox inside a sandbox and of the preview
// proxy, whose sandboxes are real processes (conformance/simulators/machine). It keeps what the cloud keeps: keys,
// unique names, states with their transitions, quotas, rate limits, time-outs and the bodies of errors. On demand it
// fails in every way of its table of faults. The vendor's own SDKs hold it to the protocol.
//
// One listener serves all of it: the API below /api, the toolbox below /toolbox, previews by host name, and the
// switches of the simulator itself below /_simulator.
package daytona

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// Config says what the simulated account has. Zero fields have the values of the cloud's first tier.
type Config struct {
	// Cloud makes the boxes. It is not closed by the simulator.
	Cloud *machine.Cloud
	// Key is the API key of the only organization; empty: dtn_simulated.
	Key string
	// Limits are what the organization and one sandbox may have.
	Limits Limits
	// Rates are the requests in a minute, by throttler: authenticated, sandbox-create, sandbox-lifecycle.
	Rates map[string]int
	// Step is how long each state on the way to another one lasts; 0: 20 ms. Build is that of an image that was
	// never used before; 0: ten steps.
	Step, Build time.Duration
	// Minute is how long a minute of the timers (auto-stop, ttl) lasts; 0: a minute.
	Minute time.Duration
	// Images are the file systems that images are made of, by the last word of an image's name without its tag.
	// Other names are made of base. Nil: base, node and python.
	Images map[string]string
	// Logger gets what happens in the background; nil: nothing is logged.
	Logger *slog.Logger
}

// Limits are in virtual CPUs and GiB, as the cloud counts.
type Limits struct {
	CPU, Memory, Disk                      int
	SandboxCPU, SandboxMemory, SandboxDisk int
}

// Simulator is one simulated account. It is safe for concurrent use.
type Simulator struct {
	config   Config
	log      *slog.Logger
	api      *http.ServeMux
	toolbox  *http.ServeMux
	faults   faults
	throttle throttle

	mu         sync.Mutex
	sandboxes  map[string]*sandbox
	snapshots  map[string]*snapshot
	registries map[string]registry
	images     map[string]bool // that were built before

	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// The names of the throttlers.
const (
	throttleAll       = "authenticated"
	throttleCreate    = "sandbox-create"
	throttleLifecycle = "sandbox-lifecycle"
)

// New makes a simulated account with the general snapshots that every organization has. It must be closed.
func New(c Config) *Simulator {
	c.Key = cmp.Or(c.Key, "dtn_simulated")
	c.Step = cmp.Or(c.Step, 20*time.Millisecond)
	c.Build = cmp.Or(c.Build, 10*c.Step)
	c.Minute = cmp.Or(c.Minute, time.Minute)
	l := &c.Limits
	l.CPU, l.Memory, l.Disk = cmp.Or(l.CPU, 10), cmp.Or(l.Memory, 20), cmp.Or(l.Disk, 30)
	l.SandboxCPU, l.SandboxMemory, l.SandboxDisk = cmp.Or(l.SandboxCPU, 4), cmp.Or(l.SandboxMemory, 8), cmp.Or(l.SandboxDisk, 10)
	if c.Rates == nil {
		c.Rates = map[string]int{throttleAll: 10_000, throttleCreate: 300, throttleLifecycle: 10_000}
	}
	if c.Images == nil {
		c.Images = map[string]string{"base": "base", "node": "node", "python": "python"}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Simulator{
		config: c, log: c.Logger, throttle: throttle{rates: c.Rates},
		sandboxes: map[string]*sandbox{}, snapshots: map[string]*snapshot{}, registries: map[string]registry{}, images: map[string]bool{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for _, one := range generalSnapshots() {
		s.snapshots[one.ID] = one
	}
	s.api, s.toolbox = s.serveAPI(), s.serveToolbox()
	s.work.Go(s.keepTime)
	return s
}

// Close destroys all sandboxes and snapshots, and returns when nothing of them is left.
func (s *Simulator) Close() error {
	s.cancel()
	s.work.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	var failures []error
	for _, sb := range s.sandboxes {
		failures = append(failures, sb.remove(context.Background()))
	}
	for _, one := range s.snapshots {
		failures = append(failures, one.remove())
	}
	clear(s.sandboxes)
	clear(s.snapshots)
	return errors.Join(failures...)
}

// ServeHTTP serves one request of any kind.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if port, name, is := previewed(r.Host); is {
		s.servePreview(w, r, port, name)
		return
	}
	switch {
	case strings.HasPrefix(r.URL.Path, "/_simulator/faults"):
		s.serveFaults(w, r)
	case strings.HasPrefix(r.URL.Path, "/api/socket.io"):
		refuse(w, r, notFound("Cannot GET "+r.URL.Path)) // clients then poll
	case strings.HasPrefix(r.URL.Path, "/api/"):
		http.StripPrefix("/api", http.HandlerFunc(s.admitted(s.api.ServeHTTP))).ServeHTTP(w, r)
	case strings.HasPrefix(r.URL.Path, "/toolbox/"):
		s.admitted(s.toolboxOf)(w, r)
	default:
		refuse(w, r, notFound("Cannot "+r.Method+" "+r.URL.Path))
	}
}

// admitted lets requests with the key pass.
func (s *Simulator) admitted(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+s.config.Key {
			refuse(w, r, &failure{Status: http.StatusUnauthorized, Message: "Invalid credentials"})
			return
		}
		next(w, r)
	}
}
