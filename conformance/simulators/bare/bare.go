//go:build linux

// Package bare is the smallest cloud of simulators/machine: its boxes have limits, users and a network, and know
// nothing of envd. It is offered in two poor forms, each of which some real place has: OnePort lets one port of a box be
// reached, OnlyExec lets programs be started and nothing else. The whole suites of the clients run on both.
package bare

import (
	"context"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// Cloud is what both forms have in common. It is safe for concurrent use. Its boxes end with the machine's cloud.
type Cloud struct {
	machine *machine.Cloud
	mu      sync.Mutex
	boxes   map[string]*rented
}

// rented is one box, with what whoever made it said of it.
type rented struct {
	*machine.Box // nil while it is being made
	spec         adapters.Spec
	created      time.Time
	timer        *time.Timer
}

// New makes a cloud of the boxes of a machine, which the caller closes.
func New(m *machine.Cloud) *Cloud { return &Cloud{machine: m, boxes: map[string]*rented{}} }

// Describe returns what is the same for all boxes.
func (c *Cloud) Describe() adapters.Description {
	state := func(feature adapters.Feature) adapters.Capability {
		return adapters.Capability{Feature: feature, Value: adapters.Yes, Source: "the package's own text", Evidence: adapters.Declared}
	}
	return adapters.Description{
		Provider: "bare", Isolation: "container", InternetOff: true, SeenAtOnce: true,
		Max:          adapters.Resources{CPU: 4, MemoryMB: 4096, DiskMB: 20480},
		Capabilities: []adapters.Capability{state(adapters.FeatureEgressLists), state(adapters.FeatureLiveNetwork)},
	}
}

// templates are the ids of the templates by their names.
func templates() map[string]string {
	return map[string]string{"base": "bare0000000000000000", "node": "bare0000000000000001", "python": "bare0000000000000002"}
}

// Resolve knows the templates by name and by id.
func (c *Cloud) Resolve(_ context.Context, name string) (adapters.Template, error) {
	for known, id := range templates() {
		if name == known || name == id {
			return adapters.Template{ID: id, Name: known, Resources: adapters.Resources{CPU: 2, MemoryMB: 1024, DiskMB: 10240}}, nil
		}
	}
	return adapters.Template{}, adapters.Errorf(adapters.KindNotFound, "there is no template %q: there are base, node and python", name)
}

// Create makes a box.
func (c *Cloud) Create(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	if err := c.check(ctx, spec); err != nil {
		return adapters.Box{}, err
	}
	one := &rented{spec: spec, created: time.Now()}
	c.mu.Lock()
	_, taken := c.boxes[spec.BoxID]
	if !taken {
		c.boxes[spec.BoxID] = one
	}
	c.mu.Unlock()
	if taken {
		return adapters.Box{}, adapters.Errorf(adapters.KindExists, "there is a box %s", spec.BoxID)
	}
	r := spec.Resources
	made, err := c.machine.Create(ctx, machine.Spec{
		Name: spec.BoxID, CPU: r.CPU, MemoryMB: r.MemoryMB, DiskMB: r.DiskMB, Image: spec.Template.Name, Network: reachable(spec.Network),
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		delete(c.boxes, spec.BoxID)
		return adapters.Box{}, err
	}
	one.Box = made
	one.timer = time.AfterFunc(time.Until(spec.Envd.Deadline), func() { _ = made.Stop(context.Background()) })
	return one.describe(), nil
}

func (c *Cloud) check(ctx context.Context, spec adapters.Spec) error {
	if _, err := c.Resolve(ctx, spec.Template.Name); err != nil {
		return err
	}
	most, r := c.Describe().Max, spec.Resources
	if r.CPU > most.CPU || r.MemoryMB > most.MemoryMB || r.DiskMB > most.DiskMB {
		return adapters.Errorf(adapters.KindUnsupported, "a box has at most %+v", most)
	}
	if len(spec.Network.Rules) > 0 {
		return adapters.Errorf(adapters.KindUnsupported, "headers cannot be added here")
	}
	return ctx.Err()
}

func reachable(n adapters.Network) machine.Network {
	return machine.Network{Internet: n.Internet, Allow: n.AllowOut, Deny: n.DenyOut}
}

func (r *rented) describe() adapters.Box {
	return adapters.Box{
		ID: r.spec.BoxID, Attempt: r.spec.Attempt, Deployment: r.spec.Deployment, SandboxID: r.spec.Envd.SandboxID,
		CreatedAt: r.created, Alive: r.Cause() == "",
	}
}

func (c *Cloud) find(id string) (*rented, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one := c.boxes[id]; one != nil && one.Box != nil {
		return one, nil
	}
	return nil, adapters.Errorf(adapters.KindNotFound, "there is no box %s", id)
}

// Get returns one box.
func (c *Cloud) Get(_ context.Context, id string) (adapters.Box, error) {
	one, err := c.find(id)
	if err != nil {
		return adapters.Box{}, err
	}
	return one.describe(), nil
}

// List returns the boxes with a label.
func (c *Cloud) List(_ context.Context, deployment string) (list []adapters.Box, _ error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.boxes {
		if one.Box != nil && one.spec.Deployment == deployment {
			list = append(list, one.describe())
		}
	}
	return list, nil
}

// Destroy ends a box and removes it.
func (c *Cloud) Destroy(ctx context.Context, id string) error {
	one, err := c.find(id)
	if err != nil {
		return nil //nolint:nilerr // that it is not there is success
	}
	one.timer.Stop()
	if err := one.Box.Destroy(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.boxes, id)
	return nil
}

// Boxes is how many there are, of whatever label.
func (c *Cloud) Boxes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.boxes)
}

// Run has no work to do.
func (c *Cloud) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Extend moves the time at which the box is stopped.
func (c *Cloud) Extend(_ context.Context, id string, deadline time.Time) error {
	one, err := c.find(id)
	if err == nil {
		one.timer.Reset(time.Until(deadline))
	}
	return err
}

// Ended tells of the end of a box.
func (c *Cloud) Ended(id string) (<-chan struct{}, error) {
	one, err := c.find(id)
	if err != nil {
		return nil, err
	}
	return one.Box.Ended(), nil
}

// SetNetwork replaces what a box may reach.
func (c *Cloud) SetNetwork(ctx context.Context, id string, n adapters.Network) error {
	one, err := c.find(id)
	if err != nil {
		return err
	}
	return one.Box.SetNetwork(ctx, reachable(n))
}

// Put writes a file in a box.
func (c *Cloud) Put(ctx context.Context, id, path string, mode fs.FileMode, content io.Reader) error {
	one, err := c.find(id)
	if err != nil {
		return err
	}
	return one.Write(ctx, path, mode, content)
}
