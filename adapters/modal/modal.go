// Package modal makes boxes that are sandboxes of Modal. It speaks Modal's gRPC protocol by the published stubs and
// makes the calls that it needs and no more: its own small client keeps the auth token, retries what may be
// retried, and waits where the cloud asks to.
//
// A box is known by the sandbox's name, which is unique among the running ones of an app, and by tags: our id, the
// attempt and the deployment. It is reached by a tunnel of one port; where its network is blocked, over the start of
// a program. Modal cannot move the end of a sandbox: each is given the longest life that there is, and its first
// program waits for envd to say that the deadline has passed.
package modal

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/bootstrap"
)

// Config says which account is used and how. Zero fields are as the comments say.
type Config struct {
	// URL is the control plane; empty: https://api.modal.com. Only there, and at the routers that it names, the
	// credential is shown. With http:// nothing is encrypted: for simulators.
	URL string
	// Key reads the account's credential where it is kept, TOKEN_ID:TOKEN_SECRET, each time that it is needed.
	Key func() (string, error)
	// App is the app that boxes are in; empty: isthmus. Environment is that of the app; empty: the account's own.
	App, Environment string
	// Templates are what boxes can be made from; none: base.
	Templates []Template
	// Regions are where boxes may be; none: wherever there is room.
	Regions []string
	// GPUs are the kinds that may be asked for; nil: those that Modal has.
	GPUs []string
	// Max are the largest sizes; zero fields: Modal decides.
	Max adapters.Resources
	// MaxLife is the life that boxes are given, at most 24 hours, which it is when 0.
	MaxLife time.Duration
	// TLS is how the tunnels are trusted; nil: as this machine trusts.
	TLS *tls.Config
	// Envd opens the program that is baked into images; nil: nothing is baked, and every create uploads it. Path
	// is where it lies in boxes, Port the one that is opened; they must be those of the bootstrap.
	Envd func() (io.ReadCloser, error)
	Path string
	Port int
	// Logger gets what happens in the background; nil: nothing is logged.
	Logger *slog.Logger
}

// What the bootstrap has, too.
const (
	defaultPath = "/opt/isthmus/envd"
	defaultPort = 49980
	// EndPipe is the pipe by which envd ends a box (bootstrap.Config.End).
	EndPipe = "/run/isthmus/end"
)

const (
	defaultURL = "https://api.modal.com"
	defaultApp = "isthmus"
	// longestLife is the most that Modal gives a sandbox.
	longestLife = 24 * time.Hour
)

// Provider is the adapter. It is safe for concurrent use, and must be closed.
type Provider struct {
	config  Config
	log     *slog.Logger
	control *control
	conn    *grpc.ClientConn
	bakes   chan Template

	mu     sync.Mutex
	app    string            // id of the app; empty: not asked for yet
	images map[string]string // id of the image by template
	baked  map[string]string // id of the image with envd in it, by template
	boxes  map[string]*known
}

var (
	_ bootstrap.Bare       = (*Provider)(nil)
	_ bootstrap.Addressed  = (*Provider)(nil)
	_ adapters.Networker   = (*Provider)(nil)
	_ adapters.Snapshotter = (*Provider)(nil)
)

// boxIDs is the form of our ids, and of the sandboxes' names.
var boxIDs = regexp.MustCompile(`^[a-z0-9]{1,40}$`)

// New makes the adapter. It does no I/O; the error says what is wrong with the configuration.
func New(c Config) (*Provider, error) {
	c.URL, c.App = cmp.Or(strings.TrimSuffix(c.URL, "/"), defaultURL), cmp.Or(c.App, defaultApp)
	c.Path, c.Port = cmp.Or(c.Path, defaultPath), cmp.Or(c.Port, defaultPort)
	c.MaxLife = min(cmp.Or(c.MaxLife, longestLife), longestLife)
	if c.Key == nil {
		return nil, errors.New("a modal pool needs a reference to its credential")
	}
	if c.MaxLife < time.Minute {
		return nil, errors.New("the longest life of a modal pool's sandboxes must be a minute or more")
	}
	if len(c.Templates) == 0 {
		c.Templates = []Template{{Name: "base"}}
	}
	if c.GPUs == nil {
		c.GPUs = []string{"t4", "l4", "a10g", "l40s", "a100-40gb", "a100-80gb", "h100", "h200", "b200"}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Provider{
		config: c, log: c.Logger, bakes: make(chan Template, len(c.Templates)),
		images: map[string]string{}, baked: map[string]string{}, boxes: map[string]*known{},
	}
	conn, err := dial(c.URL)
	if err != nil {
		return nil, err
	}
	p.conn, p.control = conn, newControl(conn, c.URL, c.Key)
	return p, nil
}

// Close lets go of all connections. Boxes stay.
func (p *Provider) Close() error {
	p.mu.Lock()
	boxes := p.boxes
	p.boxes = map[string]*known{}
	p.mu.Unlock()
	for _, one := range boxes {
		one.close()
	}
	return p.conn.Close()
}

// source is where what is stated is from, and sourceDate when it said so.
const (
	source     = "https://modal.com/docs/guide/sandboxes"
	sourceDate = "2026-11-29"
)

// secureOnly is what is stated of headers: requests without TLS do not get them.
const secureOnly = "https"

// Describe returns what Modal says of itself.
func (p *Provider) Describe() adapters.Description {
	d := adapters.Description{
		Provider: "modal", Isolation: "gvisor", Tier: "sandboxes of the second version", InternetOff: true,
		Unenforced: []string{"pids", "disk"}, Max: p.config.Max,
	}
	for feature, value := range map[adapters.Feature]string{
		adapters.FeatureUniqueNames: adapters.Yes, adapters.FeatureMaxLife: p.config.MaxLife.String(), adapters.FeatureImages: adapters.No,
		adapters.FeatureEgressLists: adapters.Yes, adapters.FeatureAllowCIDRs: adapters.Yes, adapters.FeatureDenyCIDRs: adapters.Yes,
		adapters.FeatureAllowDomains: adapters.Yes, adapters.FeatureLiveNetwork: adapters.Yes, adapters.FeatureInjectHeaders: secureOnly,
		adapters.FeatureSnapshot: string(adapters.LevelFilesystem), adapters.FeatureGPU: strings.Join(p.config.GPUs, ","),
	} {
		d.Capabilities = append(d.Capabilities, adapters.Capability{Feature: feature, Value: value, Source: source, Date: sourceDate, Evidence: adapters.Declared})
	}
	if len(p.config.Regions) > 0 {
		d.Capabilities = append(d.Capabilities, adapters.Capability{
			Feature: adapters.FeatureRegions, Value: strings.Join(p.config.Regions, ","), Source: "configuration", Evidence: adapters.Declared,
		})
	}
	sortCapabilities(d.Capabilities)
	return d
}

// appID is the id of the app, which is made when there is none.
func (p *Provider) appID(ctx context.Context) (string, error) {
	p.mu.Lock()
	id := p.app
	p.mu.Unlock()
	if id != "" {
		return id, nil
	}
	id, err := p.control.app(ctx, p.config.App, p.config.Environment)
	if err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.app = id
	return id, nil
}
