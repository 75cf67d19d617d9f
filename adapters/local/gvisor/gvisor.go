//go:build linux

// Package gvisor is the stronger form of the boxes of this machine: each has a kernel of its own, gVisor's, which
// runs as an ordinary process of the host (runsc). Its root file system is that of the same images, its writable
// layer a file of bounded size, its control group and its egress those of package local's boxes.
//
// envd is process 1 of a box, told its configuration over its standard input, and is reached over the standard
// streams of one program that is started in the box (adapters/bootstrap): a socket of the host in a box would be a
// way around gVisor.
//
// A box has a network namespace of the host with one pair of interfaces. gVisor speaks on one of them; what arrives
// at the other is led to the egress's transparent sockets, as it is in a box of package local. The facade makes these
// sockets itself and makes them anew after a restart, so that connections outside do not outlive it.
//
// Root only: an ordinary user has no network namespace of the host to give, and no control group in general.
package gvisor

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/bootstrap"
	"github.com/isthmus/isthmus/adapters/local"
	"github.com/isthmus/isthmus/adapters/local/cgroup"
	"github.com/isthmus/isthmus/adapters/local/egress"
)

// Isolation is the word for boxes of this package in configurations and descriptions.
const Isolation = "gvisor"

// Config says how boxes are made.
type Config struct {
	// DataDir is the data folder; everything of this package is in its folder "gvisor".
	DataDir string
	// Runsc is the program of gVisor; empty: the one that is found in PATH.
	Runsc string
	// EnvdPath and SudoPath are the static binaries that go into boxes; empty: those that this binary carries.
	EnvdPath, SudoPath string
	// Max is the largest box; zero fields: the whole machine.
	Max adapters.Resources
	// Boxes bounds the boxes at one time; 0: unbounded.
	Boxes int
	// Secrets derives the two secrets of a box from its id, as the fleet does for Spec.Envd.
	Secrets func(boxID string) (transport, control string)
	// Images resolves template names.
	Images local.Images
	// NoEgress leaves boxes without the internet, whatever a create asks for.
	NoEgress bool
	// AllowPrivate and Resolvers are those of local.Config.
	AllowPrivate []netip.Prefix
	Resolvers    []netip.AddrPort
	// Logger gets what happens in the background; nil: nothing is logged.
	Logger *slog.Logger
}

// Provider is the adapter. It is safe for concurrent use.
type Provider struct {
	*bootstrap.Provider
	place *place
}

// place is the machine as one whose boxes come with envd running.
type place struct {
	config      Config
	log         *slog.Logger
	dir         string // DataDir/gvisor
	lock        io.Closer
	runsc       string
	envd, sudo  string // our copies
	description adapters.Description
	cgroups     *cgroup.Tree
	flows       *egress.Budget

	mu         sync.Mutex
	boxes      map[string]*box
	background context.Context // ends when this process lets go of the boxes
	letGo      context.CancelFunc
	running    sync.WaitGroup
}

// dirBoxes is where the boxes are, below DataDir/gvisor.
const dirBoxes = "boxes"

// Open prepares the data folder, proves with a throw-away box that gVisor runs here, takes the boxes of an earlier
// facade over and removes the remains of those that ended. Its errors say what to do.
func Open(ctx context.Context, config Config) (*Provider, error) {
	if os.Getuid() != 0 {
		return nil, adapters.Errorf(adapters.KindUnsupported, "isolation gvisor needs root: run isthmus as root, or leave isolation empty for user namespaces")
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	data, err := filepath.Abs(config.DataDir)
	if err != nil {
		return nil, err
	}
	p := &place{config: config, log: config.Logger, dir: filepath.Join(data, Isolation), boxes: map[string]*box{}}
	p.background, p.letGo = context.WithCancel(context.Background())
	made := &Provider{place: p, Provider: bootstrap.New(p, bootstrap.Config{Secrets: config.Secrets, Started: true, Logger: config.Logger})}
	err = p.prepare()
	if err == nil {
		err = p.adopt(ctx)
	}
	if err == nil {
		err = p.probe(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, made.Close())
	}
	return made, nil
}

// prepare opens what boxes are made with.
func (p *place) prepare() error {
	if err := os.MkdirAll(filepath.Join(p.dir, dirBoxes), 0o700); err != nil {
		return err
	}
	var err error
	if p.lock, err = local.Lock(filepath.Join(p.dir, "lock")); err != nil {
		return err
	}
	if p.runsc, err = findRunsc(p.config.Runsc); err != nil {
		return err
	}
	// Whatever our own starter left open must not come into a box.
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return err
	}
	envd, tools, err := local.InstallAgents(p.dir, p.config.EnvdPath, p.config.SudoPath)
	if err != nil {
		return err
	}
	p.envd, p.sudo = envd, filepath.Join(tools, "usr/bin/sudo")
	if p.flows, err = local.Flows(); err != nil {
		return err
	}
	if p.cgroups, err = cgroup.Find(); err != nil {
		return adapters.Errorf(adapters.KindUnsupported, "gVisor's sandboxes need control groups, and none can be made here: %w", err)
	}
	p.description = adapters.Description{
		Provider: "local", Isolation: Isolation, Tier: "gVisor as root", Unenforced: p.cgroups.Unenforced(), InternetOff: true,
		SeenAtOnce: true, Max: local.Largest(p.config.Max, p.dir),
	}
	return nil
}

// findRunsc returns the path of gVisor's program.
func findRunsc(configured string) (string, error) {
	path, err := exec.LookPath(configured)
	if configured == "" {
		path, err = exec.LookPath("runsc")
	}
	if err != nil {
		return "", adapters.Errorf(adapters.KindInvalid, "isolation gvisor needs gVisor's program runsc: install it, or name its path (local.runsc): %w", err)
	}
	return filepath.Abs(path)
}

// Describe returns what this machine can do with gVisor.
func (p *place) Describe() adapters.Description { return p.description }

// Resolve finds a template by name, or by the id that it gave before.
func (p *place) Resolve(ctx context.Context, name string) (adapters.Template, error) {
	root, err := p.config.Images.Root(ctx, name)
	if err != nil {
		return adapters.Template{}, err
	}
	return adapters.Template{ID: local.TemplateID(root.Name), Name: root.Name, Resources: local.DefaultResources(), EnvVars: root.Env}, nil
}

// Run does the background work until ctx ends, and then lets go of the boxes, which stay alive.
func (p *place) Run(ctx context.Context) error {
	<-ctx.Done()
	return p.close()
}

// Close lets go of the boxes and of the data folder; the boxes stay alive. A second time is fine.
func (p *Provider) Close() error { return p.place.close() }

func (p *place) close() error {
	p.letGo()
	p.running.Wait()
	if p.lock == nil {
		return nil
	}
	if err := p.lock.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
