//go:build linux

package machine

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/envd/tunnel"
)

// Spec is what a box is made of.
type Spec struct {
	// Name is the vendor's name of the box, for messages.
	Name string
	// CPU in whole processors, MemoryMB and DiskMB in MiB; 0: 1, 512 and 2048.
	CPU, MemoryMB, DiskMB int
	Network               Network
	// From is the file system that the box starts with; nil: that of the image.
	From *Snapshot
	// Image is the name of a template: base, node or python; empty: base. With From it is that of the snapshot.
	Image string
	// Env are variables of every program in the box.
	Env map[string]string
}

const (
	defaultImage    = "base"
	defaultCPU      = 1
	defaultMemoryMB = 512
	defaultDiskMB   = 2048
)

// Box is one box.
type Box struct {
	cloud              *Cloud
	id                 string
	transport, control string
	client             *http.Client // to the daemon in the box

	mu       sync.Mutex
	spec     adapters.Spec // what the box is made of
	injected injected
	ended    chan struct{}
	cause    string
	// stopped ends what waits for the end of what runs now.
	stopped context.CancelFunc
}

// Create makes a box and returns when programs can be started in it.
func (c *Cloud) Create(ctx context.Context, s Spec) (*Box, error) {
	b := &Box{cloud: c, id: newID(), transport: rand.Text(), control: rand.Text(), injected: s.Network.injected()}
	template, err := c.template(ctx, s)
	if err != nil {
		return nil, err
	}
	b.spec = adapters.Spec{
		BoxID: b.id, Attempt: b.id, Deployment: deployment, Template: template, Network: s.Network.neutral(),
		Resources: adapters.Resources{
			CPU: cmp.Or(s.CPU, defaultCPU), MemoryMB: cmp.Or(s.MemoryMB, defaultMemoryMB), DiskMB: cmp.Or(s.DiskMB, defaultDiskMB),
		},
		Envd: envd.Config{SandboxID: b.id, DefaultUser: "root", Transport: b.transport, Control: b.control, EnvVars: map[string]string{}},
	}
	maps.Copy(b.spec.Envd.EnvVars, template.EnvVars)
	if s.From != nil {
		maps.Copy(b.spec.Envd.EnvVars, s.From.env)
		b.spec.Resources.DiskMB = max(b.spec.Resources.DiskMB, s.From.DiskMB)
	}
	maps.Copy(b.spec.Envd.EnvVars, s.Env)
	b.client = &http.Client{Transport: &http.Transport{DialContext: b.dialDaemon, DisableCompression: true, MaxIdleConnsPerHost: 16}}
	c.add(b)
	b.spec.Envd.Deadline = time.Now().Add(lease)
	if _, err := c.local.Create(ctx, b.spec); err != nil {
		c.drop(b)
		return nil, err
	}
	err = b.follow()
	if err == nil {
		err = b.trust(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, b.Destroy(context.WithoutCancel(ctx)))
	}
	return b, nil
}

// template is that of an image, or of a snapshot.
func (c *Cloud) template(ctx context.Context, s Spec) (adapters.Template, error) {
	if s.From != nil {
		return s.From.template, nil
	}
	return c.local.Resolve(ctx, cmp.Or(s.Image, defaultImage))
}

// follow waits for the end of what runs now: that which the place tells, or a stop.
func (b *Box) follow() error {
	told, err := b.cloud.local.Ended(b.id)
	if err != nil {
		return err
	}
	stopped, stop := context.WithCancel(b.cloud.live)
	ended := make(chan struct{})
	b.mu.Lock()
	b.ended, b.cause, b.stopped = ended, "", stop
	b.mu.Unlock()
	b.cloud.attend(func() {
		defer stop()
		select {
		case <-told:
		case <-stopped.Done():
		}
		close(ended)
	})
	return nil
}

// Ended is closed when the box's processes have ended: by Stop or Destroy, or by themselves. After a Restart there is
// another channel.
func (b *Box) Ended() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended
}

// Why a box ended. What ended the first process from outside cannot be told apart further.
const (
	CauseStopped   = "stopped"
	CauseDestroyed = "destroyed"
	CauseItself    = "ended by itself"
)

// Cause says why the box's processes ended; empty while they run. A program that took more memory than there is was
// killed alone: its exit says so, and the box goes on.
func (b *Box) Cause() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.ended:
		return cmp.Or(b.cause, CauseItself)
	default:
		return ""
	}
}

// made is what the box is made of.
func (b *Box) made() adapters.Spec {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.spec
}

// intend notes why the box is about to end.
func (b *Box) intend(cause string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.ended: // it was something else
	default:
		b.cause = cause
	}
}

// Usage takes one sample of what the box uses.
func (b *Box) Usage(ctx context.Context) (adapters.Sample, error) {
	return b.cloud.local.Measure(ctx, b.id)
}

// Destroy ends the box and removes everything of it. Twice is fine.
func (b *Box) Destroy(ctx context.Context) error {
	b.intend(CauseDestroyed)
	if err := b.cloud.local.Destroy(ctx, b.id); err != nil {
		return err
	}
	b.halted()
	b.cloud.drop(b)
	return nil
}

// halted notes that nothing of the box runs any more.
func (b *Box) halted() {
	b.mu.Lock()
	stop, ended := b.stopped, b.ended
	b.mu.Unlock()
	if stop != nil {
		stop()
		<-ended
	}
	b.client.CloseIdleConnections()
}

// Dial opens a connection to a TCP port of the box, also one on which something listens on 127.0.0.1 only. The error
// is tunnel.ErrPortClosed when nothing listens there.
func (b *Box) Dial(ctx context.Context, port uint16) (net.Conn, error) {
	endpoint, err := b.cloud.local.Reach(ctx, b.id)
	if err != nil {
		return nil, err
	}
	conn, err := tunnel.Dial(ctx, tunnel.Target{URL: endpoint.URL, Header: endpoint.Header, Dial: endpoint.Dial, Control: b.control}, int(port))
	if err != nil {
		return nil, err // not a typed nil
	}
	return conn, nil
}

// dialDaemon connects to the daemon in the box.
func (b *Box) dialDaemon(ctx context.Context, _, _ string) (net.Conn, error) {
	endpoint, err := b.cloud.local.Reach(ctx, b.id)
	if err != nil {
		return nil, err
	}
	return endpoint.Dial(ctx)
}

func (c *Cloud) add(b *Box) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.boxes[b.id] = b
}

func (c *Cloud) drop(b *Box) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.boxes, b.id)
}
