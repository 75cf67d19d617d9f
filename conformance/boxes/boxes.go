//go:build linux

// Package boxes is a small cloud for tests: its boxes are real processes in namespaces of their own, on a copy
// of a root file system, and know nothing of envd. It is offered in two poor forms, each of which some real
// place has: OnePort lets one port of a box be reached, OnlyExec lets programs be started and nothing else.
//
// It is no sandbox: there are no limits and no separate users. It needs root, unshare, nsenter and ip.
package boxes

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// Cloud holds the boxes. It outlives the adapters that use it, as a cloud outlives a facade.
type Cloud struct {
	dir, root string

	mu     sync.Mutex
	boxes  map[string]*machine
	copies map[string]adapters.Snapshot // by their Ref
}

// New makes a cloud whose boxes have a copy of the root file system. dir is for the cloud alone and must not
// lie on an overlay. The cloud must be closed.
func New(dir, root string) *Cloud {
	return &Cloud{dir: dir, root: root, boxes: map[string]*machine{}, copies: map[string]adapters.Snapshot{}}
}

// Close ends all boxes.
func (c *Cloud) Close() error {
	c.mu.Lock()
	ids := make([]string, 0, len(c.boxes))
	for id := range c.boxes {
		ids = append(ids, id)
	}
	c.mu.Unlock()
	var failures []error
	for _, id := range ids {
		failures = append(failures, c.Destroy(context.Background(), id))
	}
	return errors.Join(failures...)
}

const (
	templateID   = "b0xes000000000000000"
	templateName = "base"
)

// Describe returns what is the same for all boxes.
func (c *Cloud) Describe() adapters.Description {
	state := func(feature adapters.Feature, value string) adapters.Capability {
		return adapters.Capability{Feature: feature, Value: value, Source: "the package's own text", Evidence: adapters.Declared}
	}
	return adapters.Description{
		Provider: "boxes", Isolation: "process", Tier: "namespaces, for tests", Weak: true, InternetOff: true,
		Unenforced: []string{"memory", "cpu", "pids", "disk"}, Max: adapters.Resources{CPU: 4, MemoryMB: 4096, DiskMB: 20480},
		Capabilities: []adapters.Capability{
			state(adapters.FeatureUniqueNames, adapters.Yes),
			state(adapters.FeaturePause, string(adapters.LevelMemory)), state(adapters.FeatureSnapshot, string(adapters.LevelFilesystem)),
		},
	}
}

// Resolve knows one template.
func (c *Cloud) Resolve(_ context.Context, name string) (adapters.Template, error) {
	if name != templateName && name != templateID {
		return adapters.Template{}, adapters.Errorf(adapters.KindNotFound, "there is no template %q: there is %s", name, templateName)
	}
	return adapters.Template{ID: templateID, Name: templateName, Resources: adapters.Resources{CPU: 2, MemoryMB: 1024, DiskMB: 10240}}, nil
}

// Create starts a box.
func (c *Cloud) Create(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	if err := c.check(ctx, spec); err != nil {
		return adapters.Box{}, err
	}
	m := &machine{spec: spec, dir: filepath.Join(c.dir, spec.BoxID), created: time.Now(), ended: make(chan struct{})}
	c.mu.Lock()
	_, there := c.boxes[spec.BoxID]
	if !there {
		c.boxes[spec.BoxID] = m
	}
	c.mu.Unlock()
	if there {
		return adapters.Box{}, adapters.Errorf(adapters.KindExists, "there is a box %s", spec.BoxID)
	}
	if err := c.begin(ctx, m); err != nil {
		if left := c.Destroy(context.WithoutCancel(ctx), spec.BoxID); left != nil {
			return adapters.Box{}, adapters.Wrap(adapters.KindUnknownOutcome, errors.Join(err, left), "the box could not be removed")
		}
		if ctx.Err() != nil {
			return adapters.Box{}, ctx.Err()
		}
		return adapters.Box{}, adapters.Wrap(adapters.KindUnavailable, err, "the box could not be started: "+err.Error())
	}
	return m.describe(), nil
}

// begin gives a box its files, of a copy where it is made of one, and starts it.
func (c *Cloud) begin(ctx context.Context, m *machine) error {
	if from := m.spec.Template.Snapshot; from != "" {
		if err := c.fill(ctx, m, from); err != nil {
			return err
		}
	}
	return m.start(ctx, c.root)
}

func (c *Cloud) check(ctx context.Context, spec adapters.Spec) error {
	if err := c.known(ctx, spec.Template); err != nil {
		return err
	}
	most, r := c.Describe().Max, spec.Resources
	if r.CPU > most.CPU || r.MemoryMB > most.MemoryMB || r.DiskMB > most.DiskMB {
		return adapters.Errorf(adapters.KindUnsupported, "a box has at most %+v", most)
	}
	if n := spec.Network; len(n.AllowOut)+len(n.DenyOut)+len(n.Rules) > 0 {
		return adapters.Errorf(adapters.KindUnsupported, "a box has no rules of the network")
	}
	return ctx.Err()
}

// Get returns one box.
func (c *Cloud) Get(_ context.Context, boxID string) (adapters.Box, error) {
	m, err := c.find(boxID)
	if err != nil {
		return adapters.Box{}, err
	}
	return m.describe(), nil
}

// List returns the boxes with a label.
func (c *Cloud) List(_ context.Context, deployment string) ([]adapters.Box, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []adapters.Box
	for _, m := range c.boxes {
		if m.spec.Deployment == deployment {
			list = append(list, m.describe())
		}
	}
	return list, nil
}

// Destroy ends a box and removes its files.
func (c *Cloud) Destroy(ctx context.Context, boxID string) error {
	m, err := c.find(boxID)
	if err != nil {
		return nil //nolint:nilerr // that it is not there is success
	}
	if err := m.end(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(m.dir); err != nil {
		return adapters.Wrap(adapters.KindUnavailable, err, "the files of the box could not be removed")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.boxes[boxID] == m {
		delete(c.boxes, boxID)
	}
	return nil
}

// Run has no work to do.
func (c *Cloud) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Extend moves the time at which the box is ended.
func (c *Cloud) Extend(_ context.Context, boxID string, deadline time.Time) error {
	m, err := c.living(boxID)
	if err != nil {
		return err
	}
	m.until(deadline)
	return nil
}

// Ended tells of the end of a box.
func (c *Cloud) Ended(boxID string) (<-chan struct{}, error) {
	m, err := c.find(boxID)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ended, nil
}

func (c *Cloud) find(boxID string) (*machine, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.boxes[boxID]; m != nil {
		return m, nil
	}
	return nil, adapters.Errorf(adapters.KindNotFound, "there is no box %s", boxID)
}

// living finds a box that runs.
func (c *Cloud) living(boxID string) (*machine, error) {
	m, err := c.find(boxID)
	switch {
	case err != nil:
		return nil, err
	case !m.alive():
		return nil, adapters.Errorf(adapters.KindNotFound, "the box %s has ended", boxID)
	case m.describe().Paused:
		return nil, adapters.Errorf(adapters.KindPrecondition, "the box %s is paused", boxID)
	}
	return m, nil
}
