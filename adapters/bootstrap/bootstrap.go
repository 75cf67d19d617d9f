// Package bootstrap makes a provider of a place whose boxes know nothing of envd: it puts envd into a box,
// starts it, waits until it answers, and reaches it by what the place offers, an address of one port (a URL or
// a dialer) or nothing but the start of a program. An adapter for a cloud implements Bare, and Addressed where
// ports can be reached; everything that can be had of envd itself comes with this package.
package bootstrap

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/bootstrap/agent"
)

// Bare is a place whose boxes know nothing of envd. Its methods keep the promises of adapters.Provider, but
// for Create, which returns when programs can be started in the box. It may have the powers Extender (of the
// box's own limit), Meter, Watcher, Stocker, Networker, Pauser and Snapshotter: of these two, Resume and Snapshot
// return when programs can be started in the box, and this package
// brings envd back where it did not go on by itself.
type Bare interface {
	adapters.Bootable
	Describe() adapters.Description
	Resolve(ctx context.Context, name string) (adapters.Template, error)
	Create(ctx context.Context, spec adapters.Spec) (adapters.Box, error)
	Get(ctx context.Context, boxID string) (adapters.Box, error)
	List(ctx context.Context, deployment string) ([]adapters.Box, error)
	Destroy(ctx context.Context, boxID string) error
	Run(ctx context.Context) error
}

// Addressed is a Bare of whose boxes a port can be reached: by a URL, or by a dialer.
type Addressed interface {
	// Address returns the way to the port that Config names. KindNotFound when the box is gone, ErrNoAddress when
	// this one box has no address for as long as it lives, for example because its network was taken away: it is
	// then reached over the start of a program.
	Address(ctx context.Context, boxID string) (adapters.Endpoint, error)
}

// Furnished is a Bare that knows which of its boxes were made with envd of this version in them, so that nobody need
// look first.
type Furnished interface {
	// Furnished reports whether envd is in the box. One that says so and is wrong is looked at after all.
	Furnished(boxID string) bool
}

// ErrNoAddress says that a box of a place with addresses has none.
var ErrNoAddress = errors.New("the box has no address")

// Config says what is put into boxes and how it is reached.
type Config struct {
	// Secrets derives the two secrets of a box from its id, as the fleet does for Spec.Envd.
	Secrets func(boxID string) (transport, control string)
	// Envd opens the program for the boxes; nil: the one that this binary carries for Arch, in Go's words,
	// which is this machine's when it is empty.
	Envd func() (io.ReadCloser, error)
	Arch string
	// Path is where the program lies in boxes; empty: /opt/isthmus/envd. An image that has it there, in this
	// version, saves the upload.
	Path string
	// Port is the one on which envd answers the facade where the place is Addressed; 0: 49980.
	Port int
	// End is a named pipe in boxes that a program of the place reads from, to end the box when a line comes: envd
	// writes one when its deadline has passed. Empty: there is none, and the box outlives its envd.
	End string
	// Started says that the boxes come with envd running, told its configuration by the place itself: listening on
	// Socket, or on Port where the place is Addressed.
	Started bool
	// Ready bounds the wait for envd's first answer; 0: 30 s.
	Ready time.Duration
	// Waits says that the boxes start envd by themselves, as `envd wait` for the control secret of their id: the
	// provider only tells it its configuration. Nothing is put there and no program is started.
	Waits bool
	// Born is the id whose control secret the envd of a new box waits for, where Waits; nil: the box's own.
	Born func(spec adapters.Spec) string
	// Socket is where envd answers in boxes without an address, unix:PATH or HOST:PORT; empty: a socket of root's.
	Socket string
	// Logger gets what happens in the background; nil: nothing is logged.
	Logger *slog.Logger
}

const (
	// Path is where the program lies in boxes when nothing else is configured.
	Path = "/opt/isthmus/envd"
	// Socket is where envd answers in boxes without an address.
	Socket = "/run/isthmus/envd.sock"

	defaultPort   = 49980
	defaultReady  = 30 * time.Second
	defaultSocket = "unix:" + Socket
	// undoTime bounds the removal of a box that did not come to life.
	undoTime = 30 * time.Second
)

// Provider is a Bare with envd in its boxes. It is safe for concurrent use.
type Provider struct {
	Bare
	config Config
	log    *slog.Logger
	links  *links // of the boxes without an address
}

var _ adapters.Wrapper = (*Provider)(nil)

// New makes a provider of a bare place.
func New(bare Bare, c Config) *Provider {
	c.Path = cmp.Or(c.Path, Path)
	c.Port = cmp.Or(c.Port, defaultPort)
	c.Ready = cmp.Or(c.Ready, defaultReady)
	c.Socket = cmp.Or(c.Socket, defaultSocket)
	c.Arch = cmp.Or(c.Arch, runtime.GOARCH)
	if c.Envd == nil {
		c.Envd = func() (io.ReadCloser, error) { return agent.Open(agent.Envd, c.Arch) }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Provider{Bare: bare, config: c, log: c.Logger}
	p.links = newLinks(p.openLink)
	return p
}

// Create makes a box and returns when its envd answers.
func (p *Provider) Create(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	box, err := p.Bare.Create(ctx, spec)
	if err != nil {
		return adapters.Box{}, err
	}
	if err := p.boot(ctx, spec); err != nil {
		return adapters.Box{}, p.undo(ctx, spec.BoxID, err)
	}
	return box, nil
}

// undo removes a box that did not come to life, so that the error may promise that nothing is left.
func (p *Provider) undo(ctx context.Context, boxID string, cause error) error {
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	if err := p.Destroy(clean, boxID); err != nil {
		p.log.Error("remains of a failed create", "box", boxID, "err", err)
		return adapters.Wrap(adapters.KindUnknownOutcome, err, "the sandbox did not come to life and could not be removed yet")
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p.log.Warn("create: envd does not run in a box", "box", boxID, "err", cause)
	if kind := adapters.KindOf(cause); kind == adapters.KindNotFound || kind == adapters.KindInternal || kind == adapters.KindPrecondition {
		return adapters.Wrap(adapters.KindUnavailable, cause, "the sandbox was made but did not come to life: "+cause.Error())
	}
	return cause
}

// Destroy ends a box.
func (p *Provider) Destroy(ctx context.Context, boxID string) error {
	err := p.Bare.Destroy(ctx, boxID)
	if err == nil {
		p.links.drop(boxID)
	}
	return err
}

// Reach says how to connect to envd in a box.
func (p *Provider) Reach(ctx context.Context, boxID string) (adapters.Endpoint, error) {
	if endpoint, err := p.address(ctx, boxID); !errors.Is(err, ErrNoAddress) {
		return endpoint, err
	}
	box, err := p.Get(ctx, boxID)
	if err != nil {
		return adapters.Endpoint{}, err
	}
	switch {
	case !box.Alive:
		return adapters.Endpoint{}, adapters.Errorf(adapters.KindNotFound, "the sandbox %s has ended", boxID)
	case box.Paused:
		return adapters.Endpoint{}, adapters.Errorf(adapters.KindPrecondition, "the sandbox %s is paused", boxID)
	}
	return p.links.endpoint(boxID), nil
}

// address is the box's own, or ErrNoAddress.
func (p *Provider) address(ctx context.Context, boxID string) (adapters.Endpoint, error) {
	if place, ok := p.Bare.(Addressed); ok {
		endpoint, err := place.Address(ctx, boxID)
		return endpoint, adapters.Touching(adapters.FeaturePorts, err)
	}
	return adapters.Endpoint{}, ErrNoAddress
}

// Run does the place's work in the background until ctx ends, and then lets go of the boxes.
func (p *Provider) Run(ctx context.Context) error {
	err := p.Bare.Run(ctx)
	p.links.close()
	return err
}
