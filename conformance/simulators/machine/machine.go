//go:build linux

// Package machine is the data centre of the simulated clouds: it makes boxes on this machine, real processes on
// real root file systems with limits and a network, and knows nothing of vendors. A simulator of a vendor's
// protocol stands on it.
//
// A box is one of adapters/local, seen from a vendor's side. Who uses it gets a shell as root and finds nothing of
// ours: the daemon that the boxes are driven by is their first process, listens nowhere inside them, and leaves the
// addresses and paths alone that an adapter's own envd takes.
//
// It needs root.
package machine

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local"
)

// deployment labels the boxes: a folder serves one cloud.
const deployment = "machine"

// Boxes end by themselves when nobody renewed them for so long: a cloud whose process was killed leaves none for ever.
const (
	lease     = 30 * time.Minute
	renewTime = 5 * time.Minute
)

// Config says where boxes are made, and of what.
type Config struct {
	// Dir is a folder for the cloud alone, not on an overlay. What an earlier process left there is removed.
	Dir string
	// Images finds the root file systems; see Folder.
	Images local.Images
	// EnvdPath and SudoPath are programs that go into boxes; empty: those that this binary carries, or the ones
	// beside it.
	EnvdPath, SudoPath string
	// FirstID is the first host user id that boxes get; 0: 0x50000000. Two clouds at once need different ones,
	// 0x1000000 apart.
	FirstID uint32
	// AllowPrivate are private ranges of the machine's network that boxes may reach, Resolvers answer their
	// look-ups; none: those of this machine.
	AllowPrivate []netip.Prefix
	Resolvers    []netip.AddrPort
	// Roots are whom the cloud trusts when it puts headers into requests over TLS; nil: whom this machine trusts.
	Roots *x509.CertPool
	// Logger gets what happens in the background; nil: nothing is logged.
	Logger *slog.Logger
}

const (
	defaultFirstID = 0x50000000
	idSpan         = 0x1000000
)

// Cloud makes boxes. It is safe for concurrent use.
type Cloud struct {
	local *local.Local
	dir   string
	log   *slog.Logger
	// authority and roots are for requests over TLS that get headers.
	authority *authority
	roots     *x509.CertPool
	// live ends when the cloud is closed.
	live context.Context
	end  context.CancelFunc
	work sync.WaitGroup

	mu     sync.Mutex
	closed bool
	boxes  map[string]*Box
}

// New opens the cloud. It must be closed.
func New(ctx context.Context, c Config) (*Cloud, error) {
	if os.Getuid() != 0 {
		return nil, adapters.Errorf(adapters.KindUnsupported, "a simulated cloud needs root: its boxes have users, limits and disks of their own")
	}
	if c.FirstID == 0 {
		c.FirstID = defaultFirstID
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	authority, err := newAuthority()
	if err != nil {
		return nil, err
	}
	cloud := &Cloud{dir: c.Dir, log: c.Logger, authority: authority, roots: c.Roots, boxes: map[string]*Box{}}
	cloud.live, cloud.end = context.WithCancel(context.Background())
	cloud.local, err = local.Open(local.Config{
		DataDir: c.Dir, EnvdPath: c.EnvdPath, SudoPath: c.SudoPath, Images: c.Images, Secrets: cloud.secrets,
		FirstID: c.FirstID, LastID: c.FirstID + idSpan - 1, AllowPrivate: c.AllowPrivate, Resolvers: c.Resolvers,
		NoLoopback: true, Interceptor: cloud.interceptor, Logger: c.Logger,
	})
	if err != nil {
		return nil, err
	}
	if err := cloud.empty(ctx); err != nil {
		return nil, errors.Join(err, cloud.Close())
	}
	cloud.attend(cloud.renew)
	return cloud, nil
}

// attend runs work that Close waits for; false: the cloud is closed already.
func (c *Cloud) attend(work func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.work.Go(work)
	}
	return !c.closed
}

// Close ends all boxes and removes everything that the cloud made.
func (c *Cloud) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.end()
	c.work.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), cleanTime)
	defer cancel()
	if err := errors.Join(c.empty(ctx), c.local.Close()); err != nil {
		return err
	}
	return os.RemoveAll(c.dir)
}

// cleanTime bounds the removal of all that there is.
const cleanTime = 2 * time.Minute

// empty removes every box and every snapshot, whoever made it.
func (c *Cloud) empty(ctx context.Context) error {
	boxes, err := c.local.List(ctx, deployment)
	problems := []error{err}
	for _, box := range boxes {
		problems = append(problems, c.local.Destroy(ctx, box.ID))
	}
	snapshots, err := c.local.Snapshots(ctx, deployment)
	problems = append(problems, err)
	for _, snapshot := range snapshots {
		problems = append(problems, c.local.Forget(ctx, snapshot))
	}
	return errors.Join(problems...)
}

// secrets are those of a box of this cloud. A box of an earlier process is only ever removed.
func (c *Cloud) secrets(id string) (transport, control string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b := c.boxes[id]; b != nil {
		return b.transport, b.control
	}
	return "", ""
}

// renew keeps the boxes alive for as long as the cloud is.
func (c *Cloud) renew() {
	tick := time.NewTicker(renewTime)
	defer tick.Stop()
	for {
		select {
		case <-c.live.Done():
			return
		case <-tick.C:
		}
		boxes, err := c.local.List(c.live, deployment)
		if err != nil {
			continue
		}
		for _, box := range boxes {
			if !box.Alive || box.Paused {
				continue
			}
			if err := c.local.Extend(c.live, box.ID, time.Now().Add(lease)); err != nil {
				c.log.Warn("renew a box", "box", box.ID, "error", err)
			}
		}
	}
}

// newID names a box: 21 characters of [a-z0-9].
func newID() string { return "m" + strings.ToLower(rand.Text())[:20] }
