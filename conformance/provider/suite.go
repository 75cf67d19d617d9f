package provider

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
)

// Harness is the adapter under test. Nothing but the suite uses it meanwhile.
type Harness struct {
	Provider adapters.Provider
	// Secrets derives the secrets of a box, as the adapter was told to.
	Secrets func(boxID string) (transport, control string)
	// Template is one that exists; empty: base.
	Template string
	// Resources of the boxes; zero fields: those of the template.
	Resources adapters.Resources
	// Reopen returns the adapter as a restarted facade would have it, after the first one was stopped. Nil:
	// the restart is not tried.
	Reopen func() (adapters.Provider, error)
	// AtOnce is how many boxes are made at a time; 0: 6.
	AtOnce int
	// Patience is how long the adapter may take to notice the end of a box; 0: 20 s.
	Patience time.Duration
	// Soon is a deadline that a create can still meet; 0: 4 s.
	Soon time.Duration
	// Kept is a folder in boxes that outlives a pause of the file system, and is in a snapshot; empty: /home/user.
	Kept string
	// Simulated says that the boxes are this machine's, whatever the adapter states of their isolation.
	Simulated bool
	// Outside is what boxes can reach; nil: what a box may reach is only tried as far as it is refused.
	Outside *Outside
}

// Suite is an adapter with its work in the background running.
type Suite struct {
	harness  Harness
	provider adapters.Provider
	powers   adapters.Powers
	can      adapters.Capabilities
	template adapters.Template
	// deployment labels the suite's boxes.
	deployment string

	stop    context.CancelFunc
	running chan error
	// labels are the deployments that were used.
	mu     sync.Mutex
	labels map[string]bool
}

// Open starts the adapter. The suite must be closed.
func Open(ctx context.Context, h Harness) (*Suite, error) {
	h.Template = cmp.Or(h.Template, "base")
	h.AtOnce = cmp.Or(h.AtOnce, 6)
	h.Patience = cmp.Or(h.Patience, 20*time.Second)
	h.Soon = cmp.Or(h.Soon, 4*time.Second)
	h.Kept = cmp.Or(h.Kept, "/home/user")
	s := &Suite{harness: h, deployment: newID()[:16], labels: map[string]bool{}}
	s.start(h.Provider)
	template, err := s.provider.Resolve(ctx, h.Template)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("provider: the template %s: %w", h.Template, err), s.halt())
	}
	s.template = template
	s.harness.Resources = adapters.Resources{
		CPU:      cmp.Or(h.Resources.CPU, template.Resources.CPU),
		MemoryMB: cmp.Or(h.Resources.MemoryMB, template.Resources.MemoryMB),
		DiskMB:   cmp.Or(h.Resources.DiskMB, template.Resources.DiskMB),
	}
	return s, nil
}

// start begins the adapter's work in the background.
func (s *Suite) start(p adapters.Provider) {
	ctx, cancel := context.WithCancel(context.Background())
	s.provider, s.powers, s.can = p, adapters.PowersOf(p), adapters.CapabilitiesOf(p)
	s.stop, s.running = cancel, make(chan error, 1)
	go func() { s.running <- p.Run(ctx) }()
}

// halt ends that work and returns when it has ended.
func (s *Suite) halt() error {
	s.stop()
	return <-s.running
}

// Close looks, by the provider's own list, that the cases left nothing, removes what they did leave, and
// stops the adapter.
func (s *Suite) Close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var failures []error
	for label := range s.labels {
		boxes, err := s.provider.List(ctx, label)
		failures = append(failures, err)
		for _, box := range boxes {
			failures = append(failures, fmt.Errorf("provider: the box %s was left", box.ID), s.provider.Destroy(ctx, box.ID))
		}
		failures = append(failures, s.copiesLeft(ctx, label))
	}
	return errors.Join(append(failures, s.halt())...)
}

// copiesLeft looks that no copy was left under a label, and removes what was.
func (s *Suite) copiesLeft(ctx context.Context, label string) error {
	if s.powers.Snapshotter == nil {
		return nil
	}
	copies, err := s.powers.Snapshotter.Snapshots(ctx, label)
	for _, one := range copies {
		err = errors.Join(err, fmt.Errorf("provider: the copy %s was left", one.Name), s.powers.Snapshotter.Forget(ctx, one))
	}
	return err
}

// newID is a box id as the fleet makes them.
func newID() string { return "i" + strings.ToLower(rand.Text())[:20] }

// spec is a box with the suite's defaults, changed.
func (s *Suite) spec(change ...func(*adapters.Spec)) adapters.Spec {
	id := newID()
	transport, control := s.harness.Secrets(id)
	spec := adapters.Spec{
		BoxID: id, Attempt: "attempt-of-" + id, Deployment: s.deployment, TeamID: "team",
		Template: s.template, Resources: s.harness.Resources, Network: adapters.Network{Internet: true},
		Envd: envd.Config{
			SandboxID: id, TemplateID: s.template.ID, Transport: transport, Control: control, DefaultUser: "root",
			EnvVars: map[string]string{"CONFORMANCE": id}, Deadline: time.Now().Add(10 * time.Minute),
		},
	}
	for _, f := range change {
		f(&spec)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.labels[spec.Deployment] = true
	return spec
}

// create makes a box and sees to it that the case leaves nothing of it.
func (s *Suite) create(t T, change ...func(*adapters.Spec)) (adapters.Spec, func()) {
	t.Helper()
	spec := s.spec(change...)
	box, err := s.provider.Create(t.Context(), spec)
	must(t, err, "create")
	s.same(t, spec, box)
	return spec, func() { s.destroy(t, spec.BoxID) }
}

// same compares a box with what was asked for.
func (s *Suite) same(t T, spec adapters.Spec, box adapters.Box) {
	t.Helper()
	that(t, box.Alive, "the box is not alive")
	that(t, time.Since(box.CreatedAt).Abs() < time.Hour, "it was created at %s", box.CreatedAt)
	box.Alive, box.CreatedAt = false, time.Time{}
	equal(t, adapters.Box{ID: spec.BoxID, Attempt: spec.Attempt, Deployment: spec.Deployment, SandboxID: spec.Envd.SandboxID}, box, "the box")
}

// destroy ends a box, also when the case has failed.
func (s *Suite) destroy(t T, id string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	if err := s.provider.Destroy(ctx, id); err != nil {
		t.Errorf("destroy: %v (%v)", err, errors.Unwrap(err))
	}
}

// absent fails the case unless nothing of the box is left, by every way to ask.
func (s *Suite) absent(t T, spec adapters.Spec) {
	t.Helper()
	_, err := s.provider.Get(t.Context(), spec.BoxID)
	refused(t, adapters.KindNotFound, err, "get of a box that is gone")
	boxes, err := s.provider.List(t.Context(), spec.Deployment)
	must(t, err, "list")
	for _, box := range boxes {
		that(t, box.ID != spec.BoxID, "the list still has the box")
	}
}

// over reports whether a box has ended, whether or not its remains are still there.
func (s *Suite) over(t T, id string) bool {
	box, err := s.provider.Get(t.Context(), id)
	if err != nil {
		return adapters.KindOf(err) == adapters.KindNotFound
	}
	return !box.Alive
}
