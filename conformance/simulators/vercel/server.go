//go:build linux

package vercel

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// Config is one account of the simulated cloud.
type Config struct {
	// Cloud makes the boxes.
	Cloud *machine.Cloud
	// Token, Team and Project are the only ones that are known.
	Token, Team, Project string
	// Plan are its limits; without a name: pro.
	Plan Plan
	// Domain is below which ports have names; empty: vercel.run. Scheme is that of their URLs; empty: https. They
	// are served by this server, by the Host of a request.
	Domain, Scheme string
	// Images are those of the vendor's registry, by repository, and which image of this machine stands for each;
	// the vendor's own images are base.
	Images map[string]string
	// User runs commands that do not ask for root; empty: user, who is in the images of this machine.
	User string
	// DiskMB is the disk of a box; 0: 10240.
	DiskMB int
	// Logger gets what happens; nil: nothing is logged.
	Logger *slog.Logger
}

// Server is the simulated cloud. It serves the API, the ports and, below /simulator/, its own control.
type Server struct {
	config Config
	log    *slog.Logger
	api    *http.ServeMux
	faults faults
	stats  stats

	life context.Context // ends with the server
	end  context.CancelFunc
	work sync.WaitGroup

	mu        sync.Mutex
	quota     quota
	sandboxes map[string]*sandbox
	sessions  map[string]*session
	snapshots map[string]*snapshot
	drives    map[string]*drive
	routes    map[string]routed
}

// New starts an account. It must be closed before its Cloud.
func New(c Config) *Server {
	c = c.withDefaults()
	life, end := context.WithCancel(context.Background())
	s := &Server{
		config: c, log: c.Logger, api: http.NewServeMux(), life: life, end: end, quota: quota{plan: c.Plan},
		sandboxes: map[string]*sandbox{}, sessions: map[string]*session{}, snapshots: map[string]*snapshot{},
		drives: map[string]*drive{}, routes: map[string]routed{},
	}
	s.stats.calls = map[string]Traffic{}
	s.register()
	return s
}

func (c Config) withDefaults() Config {
	if c.Plan.Name == "" {
		c.Plan = Plans()[1]
	}
	if c.Domain == "" {
		c.Domain = "vercel.run"
	}
	if c.Scheme == "" {
		c.Scheme = "https"
	}
	if c.User == "" {
		c.User = "user"
	}
	if c.DiskMB == 0 {
		c.DiskMB = 10240
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Close ends all sandboxes and removes all snapshots.
func (s *Server) Close() error {
	s.end()
	s.mu.Lock()
	var sessions []*session
	for _, one := range s.sessions {
		sessions = append(sessions, one)
	}
	s.mu.Unlock()
	var errs []error
	for _, one := range sessions {
		errs = append(errs, one.destroy(context.Background()))
	}
	s.work.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, one := range s.snapshots {
		errs = append(errs, one.copy.Delete())
		delete(s.snapshots, id)
	}
	return errors.Join(errs...)
}

// ServeHTTP serves a port, the control of the simulator, or the API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if subdomain, ok := s.subdomain(r.Host); ok {
		s.servePort(w, r, subdomain)
		return
	}
	if path, ok := strings.CutPrefix(r.URL.Path, "/simulator/"); ok {
		s.serveControl(w, r, path)
		return
	}
	if path, ok := strings.CutPrefix(r.URL.Path, "/interactive/"); ok {
		s.serveInteractive(w, r, path)
		return
	}
	if rest, ok := strings.CutPrefix(r.URL.Path, "/api/"); ok {
		r = r.Clone(r.Context())
		r.URL.Path, r.URL.RawPath = "/"+rest, ""
	}
	s.api.ServeHTTP(w, r)
}

// newID makes an id as the cloud's look like.
func newID(prefix string) string { return prefix + rand.Text() }

func milliseconds(t time.Time) int64 { return t.UnixMilli() }
