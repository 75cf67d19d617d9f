// Package e2b uses an E2B-compatible server as a place for boxes: E2B Cloud, another Isthmus, or a peer. Its
// boxes speak envd themselves, so that clients' bytes pass through as they are; the adapter only makes, finds,
// extends and removes them over the REST API.
//
// A box of ours is known by its metadata: our id, the attempt and the deployment. The server gives it an id of
// its own, which is looked up by that metadata when it is not remembered.
package e2b

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// Config says which server is used and what it is known to offer.
type Config struct {
	// APIURL is the base of the control plane, for example https://api.e2b.app.
	APIURL string
	// SandboxURL is one URL for all sandboxes, to which requests are addressed by headers alone, as
	// E2B_SANDBOX_URL of the SDKs. Empty: sandboxes have host names.
	SandboxURL string
	// Domain is below which those host names are, where the server does not name one; empty: that of APIURL
	// without its "api.".
	Domain string
	// Key reads the API key where it is kept, each time that it is needed, so that a new one needs no restart.
	Key func() (string, error)
	// Templates are the names of this pool and what they mean there. Other names are looked up on the server.
	Templates []Template
	// Isolation is what the operator knows of the server's boxes; empty: unknown.
	Isolation string
	// Max are the largest sizes; zero fields: not known.
	Max adapters.Resources
	// NoInternetOff says that the server cannot take the internet away.
	NoInternetOff bool
	// MaxLife is the longest life that the server gives a box; 0: 24 hours.
	MaxLife time.Duration
	// Client sends the requests; nil: one with sensible limits. It must not follow redirects with the key.
	Client *http.Client
}

// Template is a name of this pool.
type Template struct {
	Name string
	// Inner is the id or name on the server; empty: the same name.
	Inner string
	// Resources are its sizes there; zero fields: 2 CPUs, 1024 MiB of memory, 10 GiB of disk.
	Resources adapters.Resources
}

const defaultMaxLife = 24 * time.Hour

// Provider is the adapter. It is safe for concurrent use.
type Provider struct {
	config  Config
	api     *api
	sandbox *url.URL // nil: by host name

	mu    sync.Mutex
	boxes map[string]*known
}

// known is what is remembered of a box; all of it can be asked for again.
type known struct {
	// inner is the server's id; empty while the box is being made.
	inner string
	// access is what create and connect answered; nil: not asked for yet.
	access *access
	usage  usage
}

// The powers.
var (
	_ adapters.Provider = (*Provider)(nil)
	_ adapters.Native   = (*Provider)(nil)
	_ adapters.Extender = (*Provider)(nil)
	_ adapters.Meter    = (*Provider)(nil)
	_ adapters.Journal  = (*Provider)(nil)
)

// boxIDs is the form of our ids.
var boxIDs = regexp.MustCompile(`^[a-z0-9]{1,40}$`)

// New makes the adapter. It does no I/O; the error says what is wrong with the configuration.
func New(c Config) (*Provider, error) {
	base, err := parseBase(c.APIURL)
	if err != nil {
		return nil, fmt.Errorf("the API URL of an e2b pool: %w", err)
	}
	if c.Key == nil {
		return nil, errors.New("an e2b pool needs a reference to its API key")
	}
	p := &Provider{config: c, boxes: map[string]*known{}}
	if c.SandboxURL != "" {
		if p.sandbox, err = parseBase(c.SandboxURL); err != nil {
			return nil, fmt.Errorf("the sandbox URL of an e2b pool: %w", err)
		}
	}
	p.config.Isolation = cmp.Or(c.Isolation, "unknown")
	p.config.MaxLife = cmp.Or(c.MaxLife, defaultMaxLife)
	p.config.Domain = cmp.Or(c.Domain, strings.TrimPrefix(base.Host, "api."))
	client := c.Client
	if client == nil {
		client = newClient()
	}
	p.api = &api{base: base, client: client, key: c.Key}
	return p, nil
}

func parseBase(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSuffix(text, "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, errors.New("it must be like https://api.e2b.app, without a user") // what is there may hold a secret
	}
	return u, nil
}

// newClient keeps connections, and has the bounds that do not depend on how long a create takes.
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

// Describe returns what the operator knows of the server.
func (p *Provider) Describe() adapters.Description {
	state := func(feature adapters.Feature, value, source string) adapters.Capability {
		return adapters.Capability{Feature: feature, Value: value, Source: source, Evidence: adapters.Declared}
	}
	d := adapters.Description{Provider: "e2b", Isolation: p.config.Isolation, InternetOff: !p.config.NoInternetOff, Max: p.config.Max}
	for _, feature := range []adapters.Feature{
		adapters.FeatureExec, adapters.FeatureFiles, adapters.FeaturePTY, adapters.FeatureStdin, adapters.FeatureWatch,
		adapters.FeaturePorts, adapters.FeatureDeadline, adapters.FeatureDirectEnvd,
	} {
		d.Capabilities = append(d.Capabilities, state(feature, adapters.Yes, "the E2B protocol"))
	}
	d.Capabilities = append(d.Capabilities, state(adapters.FeatureMaxLife, p.config.MaxLife.String(), "configuration"))
	return d
}

// Run has no work to do.
func (p *Provider) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// reserve takes an id for a box that is about to be made.
func (p *Provider) reserve(boxID string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.boxes[boxID] != nil {
		return false
	}
	p.boxes[boxID] = &known{}
	return true
}

// remember notes what a box is on its server.
func (p *Provider) remember(boxID, inner string, a *access) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.boxes[boxID]
	if one == nil || one.inner != "" && one.inner != inner {
		one = &known{}
		p.boxes[boxID] = one
	}
	one.inner = inner
	if a != nil {
		one.access = a
	}
}

func (p *Provider) forget(boxID string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.boxes, boxID)
}

// recall returns what is remembered of a box that is there.
func (p *Provider) recall(boxID string) (inner string, a *access) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.boxes[boxID]; one != nil {
		return one.inner, one.access
	}
	return "", nil
}

// gone says that there is no such box.
func gone(boxID string) *adapters.Error {
	return adapters.Errorf(adapters.KindNotFound, "there is no sandbox %s on its server", boxID)
}
