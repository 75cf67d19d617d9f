// Package daytona uses Daytona, or a server of its API v0 such as a fork, as a place for boxes. Its sandboxes know
// nothing of envd: adapters/bootstrap brings it in, and a snapshot that this adapter bakes has it already.
//
// A box of ours is known by its name, which is unique in an organization, and by its labels: our id, the attempt and
// the deployment. The API v2, whose clients are 2.x, is another product and is not spoken here.
package daytona

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
)

// DefaultAPIURL is the vendor's own API.
const DefaultAPIURL = "https://app.daytona.io/api"

// DefaultCreateTime bounds a create where the pool says nothing: the first one of an image builds it, which takes
// minutes and is no failure.
const DefaultCreateTime = 10 * time.Minute

// The classes of sandboxes.
const (
	ClassContainer = "container"
	ClassVM        = "linux-vm"
)

// Config says which account is used and what it is known to offer.
type Config struct {
	// APIURL is the base of the API; empty: DefaultAPIURL.
	APIURL string
	// Key reads the API key where it is kept, each time that it is needed, so that a new one needs no restart.
	Key func() (string, error)
	// Target is the region; empty: the organization's own.
	Target string
	// Class is that of the sandboxes of all templates; empty: container.
	Class string
	// Templates are the names of this pool and what they are made of; nil: base, of the vendor's snapshot daytona-small.
	Templates []Template
	// Max are the largest sizes of one sandbox; zero fields: 4 CPUs, 8 GiB of memory and 10 GiB of disk.
	Max adapters.Resources
	// Envd opens the program that is baked into snapshots at Path; nil: nothing is baked.
	Envd func() (io.ReadCloser, error)
	Path string
	// Port is the one on which envd answers the facade; 0: 49980.
	Port int
	// Client sends the requests; nil: one with sensible limits. It must not follow redirects with the key.
	Client *http.Client
	// Logger gets what happens in the background; nil: nothing is logged.
	Logger *slog.Logger
}

// Template is a name of this pool: of a snapshot of the organization, or of an image that Daytona can pull.
type Template struct {
	Name     string
	Snapshot string
	Image    string
	// Resources are the default sizes of boxes of an image, 1 CPU, 1 GiB and 3 GiB where they are 0. A snapshot has
	// sizes of its own.
	Resources adapters.Resources
}

// Provider is the adapter. It is safe for concurrent use.
type Provider struct {
	config Config
	log    *slog.Logger
	api    *api
	keeper *keeper
	bakery *bakery

	mu    sync.Mutex
	boxes map[string]known
	// snapshots are what the API said of snapshots, for a while.
	snapshots map[string]heard
}

// known is what is remembered of a box; all of it can be asked for again.
type known struct {
	sandboxID string
	toolbox   *url.URL
	created   time.Time
	// baked says that it was made of a snapshot that has envd.
	baked    bool
	endpoint adapters.Endpoint
}

// boxIDs is the form of our ids.
var boxIDs = regexp.MustCompile(`^[a-z0-9]{1,40}$`)

// New makes the adapter. It does no I/O; the error says what is wrong with the configuration.
func New(c Config) (*Provider, error) {
	base, err := url.Parse(strings.TrimSuffix(cmp.Or(c.APIURL, DefaultAPIURL), "/"))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.User != nil {
		return nil, errors.New("the API URL of a daytona pool must be like " + DefaultAPIURL + ", without a user")
	}
	if c.Key == nil {
		return nil, errors.New("a daytona pool needs a reference to its API key")
	}
	c.Class = cmp.Or(c.Class, ClassContainer)
	if c.Class != ClassContainer && c.Class != ClassVM {
		return nil, fmt.Errorf("the class of a daytona pool is %s or %s, not %q", ClassContainer, ClassVM, c.Class)
	}
	if c.Templates == nil {
		c.Templates = []Template{{Name: "base", Snapshot: map[string]string{ClassContainer: "daytona-small", ClassVM: "daytona-vm-small"}[c.Class]}}
	}
	for _, t := range c.Templates {
		if (t.Snapshot == "") == (t.Image == "") {
			return nil, fmt.Errorf("the template %s of a daytona pool must be of a snapshot or of an image", t.Name)
		}
	}
	c.Max = adapters.Resources{CPU: cmp.Or(c.Max.CPU, 4), MemoryMB: cmp.Or(c.Max.MemoryMB, 8*mib), DiskMB: cmp.Or(c.Max.DiskMB, 10*mib)}
	c.Port, c.Path = cmp.Or(c.Port, 49980), cmp.Or(c.Path, "/opt/isthmus/envd")
	if c.Client == nil {
		c.Client = newClient()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Provider{
		config: c, log: c.Logger, api: &api{base: base, client: c.Client, key: c.Key}, keeper: newKeeper(), bakery: newBakery(),
		boxes: map[string]known{}, snapshots: map[string]heard{},
	}, nil
}

// newClient keeps connections, and has the bounds that do not depend on how long a create takes.
func newClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:       http.ProxyFromEnvironment,
			DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext, TLSHandshakeTimeout: 10 * time.Second,
			MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Run ends boxes at their time and bakes snapshots until ctx ends.
func (p *Provider) Run(ctx context.Context) error {
	var work sync.WaitGroup
	work.Go(func() { p.keepTime(ctx) })
	work.Go(func() { p.bake(ctx) })
	work.Wait()
	return nil
}

// recall returns what is remembered of a box.
func (p *Provider) recall(boxID string) (known, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k, there := p.boxes[boxID]
	return k, there
}

// remember changes what is remembered of a box.
func (p *Provider) remember(boxID string, change func(*known)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.boxes[boxID]
	change(&k)
	p.boxes[boxID] = k
}

// forget lets go of a box that is gone.
func (p *Provider) forget(boxID string) {
	p.keeper.drop(boxID)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.boxes, boxID)
}

func gone(boxID string) error {
	return adapters.Errorf(adapters.KindNotFound, "there is no sandbox %s in this pool", boxID)
}
