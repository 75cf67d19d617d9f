// Package vercel makes boxes of Vercel Sandboxes, over the vendor's REST API. A box is a sandbox of its own name, not
// persistent, in which our envd runs; it is reached over one route of the sandbox, and everything else goes through
// envd. The protocol is that of the vendor's SDKs (@vercel/sandbox 3.5.0, vercel-sandbox 0.10.0 for Python).
//
// A box of ours is known by its name, which is its id, and by tags: the deployment and the attempt. A sandbox without
// these tags is somebody else's and is left alone.
package vercel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/bootstrap"
	"github.com/isthmus/isthmus/adapters/bootstrap/agent"
)

// Config is one account.
type Config struct {
	// APIURL is the base of the API; empty: https://vercel.com/api.
	APIURL string
	// PortsURL is where the ports of all sandboxes are served, by the Host of a request; empty: at their own names.
	PortsURL string
	// Token reads the access token where it is kept, each time that it is needed.
	Token func() (string, error)
	// Team and Project are the vendor's ids.
	Team, Project string
	// Plan names the account's plan, whose limits are known; empty: pro.
	Plan string
	// Region is where sandboxes run, in the vendor's words; empty: where the vendor wants.
	Region string
	// Templates are the names that boxes can be made of; none: base.
	Templates []Template
	// Secrets derives the two secrets of a box from its id, as the fleet does for Spec.Envd.
	Secrets func(boxID string) (transport, control string)
	// Envd opens the program for the boxes; nil: the one that this binary carries.
	Envd func() (io.ReadCloser, error)
	// NoBake leaves the baking of envd into snapshots away: every create uploads it.
	NoBake bool
	// Client sends the requests; nil: one with sensible limits. It must not follow redirects with the token.
	Client *http.Client
	// Logger gets what happens in the background; nil: nothing is logged.
	Logger *slog.Logger
}

// Template is a name of this pool.
type Template struct {
	Name string
	// Image is a repository of the Vercel Container Registry; empty: the vendor's universal image.
	Image string
	// Resources are the sizes of its boxes; zero fields: 2 CPUs, 4096 MiB.
	Resources adapters.Resources
}

const (
	defaultURL = "https://vercel.com/api"
	// port is the one on which envd answers the facade.
	port = 49980
	// envdPath is where envd lies in boxes.
	envdPath = "/opt/isthmus/envd"
	// arch is that of the vendor's machines.
	arch = "amd64"
)

// place is the account as boxes know it; the bootstrap makes a provider of it.
type place struct {
	config    Config
	plan      Plan
	api       *api
	ports     *url.URL // nil: at their own names
	log       *slog.Logger
	deadlines *deadlines
	bakery    *bakery

	mu    sync.Mutex
	boxes map[string]known
}

// known is what is remembered of a box; all of it can be asked for again.
type known struct {
	session string
	route   string
	// end is when the vendor ends the session.
	end time.Time
}

// The powers.
var (
	_ bootstrap.Bare       = (*place)(nil)
	_ bootstrap.Addressed  = (*place)(nil)
	_ adapters.Extender    = (*place)(nil)
	_ adapters.Networker   = (*place)(nil)
	_ adapters.Pauser      = (*place)(nil)
	_ adapters.Snapshotter = (*place)(nil)
)

// boxIDs is the form of our ids.
var boxIDs = regexp.MustCompile(`^[a-z0-9]{1,40}$`)

// New makes the adapter. It does no I/O; the error says what is wrong with the configuration.
func New(c Config) (adapters.Provider, error) {
	p, err := newPlace(c)
	if err != nil {
		return nil, err
	}
	return bootstrap.New(p, bootstrap.Config{
		Secrets: c.Secrets, Envd: p.config.Envd, Arch: arch, Path: envdPath, Port: port, Logger: p.log,
	}), nil
}

func newPlace(c Config) (*place, error) {
	plan, planned := planOf(cmp.Or(c.Plan, "pro"))
	switch {
	case c.Token == nil:
		return nil, errors.New("a vercel pool needs a reference to its access token")
	case c.Team == "" || c.Project == "":
		return nil, errors.New("a vercel pool needs the ids of its team and its project, like team_… and prj_…")
	case !planned:
		return nil, fmt.Errorf("there is no plan %q of Vercel: %s", c.Plan, planNames())
	}
	base, err := parseBase(cmp.Or(c.APIURL, defaultURL))
	if err != nil {
		return nil, fmt.Errorf("the API URL of a vercel pool: %w", err)
	}
	p := &place{config: c, plan: plan, boxes: map[string]known{}, deadlines: newDeadlines(), log: c.Logger}
	if c.PortsURL != "" {
		if p.ports, err = parseBase(c.PortsURL); err != nil {
			return nil, fmt.Errorf("the sandbox URL of a vercel pool: %w", err)
		}
	}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	if p.config.Envd == nil {
		p.config.Envd = func() (io.ReadCloser, error) { return agent.Open(agent.Envd, arch) }
	}
	if len(c.Templates) == 0 {
		p.config.Templates = []Template{{Name: "base"}}
	}
	for _, t := range p.config.Templates {
		if err := checkImage(t.Image); err != nil {
			return nil, fmt.Errorf("the template %s: %w", t.Name, err)
		}
	}
	client := c.Client
	if client == nil {
		client = newClient()
	}
	p.api = &api{base: base, client: client, token: c.Token, team: c.Team}
	p.bakery = newBakery(p)
	return p, nil
}

func parseBase(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSuffix(text, "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, errors.New("it must be like https://vercel.com/api, without a user") // what is there may hold a secret
	}
	return u, nil
}

// newClient keeps connections, and has the bounds that do not depend on how long a call takes.
func newClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:       http.ProxyFromEnvironment,
			DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext, TLSHandshakeTimeout: 10 * time.Second,
			MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second, ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// remember keeps what an answer said of a box.
func (p *place) remember(boxID string, v view) known {
	k := known{session: v.Session.ID, end: v.Session.end()}
	for _, route := range v.Routes {
		if route.Port == port {
			k.route = route.URL
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if k.route == "" {
		k.route = p.boxes[boxID].route
	}
	p.boxes[boxID] = k
	return k
}

func (p *place) forget(boxID string) {
	p.deadlines.drop(boxID)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.boxes, boxID)
}

// recall returns what is known of a box, and asks for it when nothing is.
func (p *place) recall(ctx context.Context, boxID string) (known, error) {
	p.mu.Lock()
	k, there := p.boxes[boxID]
	p.mu.Unlock()
	if there {
		return k, nil
	}
	v, err := p.living(ctx, boxID)
	if err != nil {
		return known{}, err
	}
	return p.remember(boxID, v), nil
}
