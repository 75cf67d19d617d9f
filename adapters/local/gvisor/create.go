//go:build linux

package gvisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local"
	"github.com/isthmus/isthmus/adapters/local/cgroup"
	"github.com/isthmus/isthmus/adapters/local/proc"
)

// boxIDs is the form of a box id: it becomes a folder's name and a host name.
var boxIDs = regexp.MustCompile(`^[a-z0-9]{1,40}$`)

const (
	// cleanTime bounds the removal of what a failed create left.
	cleanTime = 30 * time.Second
	// threads bounds the host's threads of a box: gVisor has some for each thread of the box's programs.
	threads = 16 << 10
)

// maker makes one box, step by step; record always says what is there to be removed.
type maker struct {
	place   *place
	spec    adapters.Spec
	root    local.Root
	record  record
	path    string
	owned   bool // the folder is ours
	network *network
}

// Create makes a box and returns when its first program was started.
func (p *place) Create(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	if !boxIDs.MatchString(spec.BoxID) {
		return adapters.Box{}, adapters.Errorf(adapters.KindInvalid, "a box id has 1 to 40 characters of a-z and 0-9")
	}
	if err := p.check(spec); err != nil {
		return adapters.Box{}, err
	}
	root, err := p.config.Images.Root(ctx, spec.Template.Name)
	if err != nil {
		return adapters.Box{}, err
	}
	if len(root.Layers) != 1 {
		return adapters.Box{}, adapters.Errorf(adapters.KindUnsupported, "template %s has %d layers, and gVisor's sandboxes take one: import it as one archive", root.Name, len(root.Layers))
	}
	if err := p.reserve(spec.BoxID); err != nil {
		return adapters.Box{}, err
	}
	m := newMaker(p, spec, root)
	b, err := m.run(ctx)
	if err != nil {
		return adapters.Box{}, p.failed(ctx, m, b, err)
	}
	p.add(b)
	return b.describe(), nil
}

func newMaker(p *place, spec adapters.Spec, root local.Root) *maker {
	return &maker{place: p, spec: spec, root: root, path: p.boxPath(spec.BoxID), record: record{
		BoxID: spec.BoxID, Attempt: spec.Attempt, Deployment: spec.Deployment, SandboxID: spec.Envd.SandboxID,
		CreatedAt: time.Now().UTC(), Resources: spec.Resources, Layers: root.Layers,
		Internet: spec.Network.Internet && !p.config.NoEgress,
	}}
}

// check refuses what no box here can have.
func (p *place) check(spec adapters.Spec) error {
	r, most := spec.Resources, p.description.Max
	switch {
	case spec.GPU.Kind != "":
		return adapters.Errorf(adapters.KindUnsupported, "this machine gives sandboxes no GPU")
	case len(spec.Network.AllowOut)+len(spec.Network.DenyOut)+len(spec.Network.Rules) > 0:
		return adapters.Errorf(adapters.KindUnsupported, "sandboxes under gVisor have the internet or not, and no rules for it: leave the network rules away")
	case spec.Template.Snapshot != "":
		return adapters.Errorf(adapters.KindUnsupported, "sandboxes under gVisor are made of images, not of copies of sandboxes: name a template")
	case r.CPU < 1 || r.MemoryMB < 1 || r.DiskMB < 1:
		return adapters.Errorf(adapters.KindInvalid, "cpu, memory and disk of a sandbox are at least 1")
	case r.CPU > most.CPU || r.MemoryMB > most.MemoryMB || r.DiskMB > most.DiskMB:
		return adapters.Errorf(adapters.KindUnsupported, "this machine gives one sandbox at most %d CPUs, %d MiB of memory and %d MiB of disk: ask for less",
			most.CPU, most.MemoryMB, most.DiskMB)
	}
	return nil
}

// run does all steps. A box that is returned beside an error has a running process.
func (m *maker) run(ctx context.Context) (*box, error) {
	for _, step := range []func() error{m.folders, m.limits, m.plug, m.writeBundle} {
		if err := step(); err != nil {
			return nil, errors.Join(err, m.unplug())
		}
	}
	err := m.launch(ctx)
	if err := errors.Join(err, m.unplug()); err != nil {
		return nil, err
	}
	fd, err := m.record.Sandbox.Open()
	if err != nil {
		return nil, fmt.Errorf("the sandbox ended at once: %w", err)
	}
	b := m.place.watched(m.record, m.path, fd)
	return b, m.place.serve(ctx, b)
}

// folders makes the box's folder, which is the mark that the id is in use.
func (m *maker) folders() error {
	if err := os.Mkdir(m.path, 0o700); err != nil {
		return err
	}
	m.owned = true
	if err := os.Mkdir(filepath.Join(m.path, dirDisk), 0o700); err != nil {
		return err
	}
	return m.record.save(m.path)
}

// limits makes the control group.
func (m *maker) limits() error {
	m.record.Cgroup = m.place.cgroups.Plan(m.record.BoxID)
	if err := m.record.save(m.path); err != nil {
		return err
	}
	return m.record.Cgroup.Make(cgroup.Limits{
		MemoryBytes: int64(m.record.Resources.MemoryMB)<<20 + overhead, CPUs: m.record.Resources.CPU, Processes: threads,
	})
}

// overhead is the memory of gVisor itself, which counts against the box's group beside what its programs use.
const overhead = 96 << 20

// plug makes the network of a box that has the internet; without it gVisor gives the box loopback only.
func (m *maker) plug() (err error) {
	if m.record.Internet {
		m.network, err = newNetwork()
	}
	return err
}

// unplug lets go of the network: from its start on the sandbox's process keeps it.
func (m *maker) unplug() error {
	if m.network == nil {
		return nil
	}
	return m.network.file.Close()
}

// recorded writes down which process the box is.
func (m *maker) recorded(pid int) (err error) {
	if m.record.Sandbox, err = proc.Identify(pid); err != nil {
		return err
	}
	return m.record.save(m.path)
}

// failed removes what a failed create left, so that the error may promise that there is nothing.
func (p *place) failed(ctx context.Context, m *maker, b *box, cause error) error {
	if errors.Is(cause, fs.ErrExist) && !m.owned {
		p.forget(m.record.BoxID)
		return adapters.Errorf(adapters.KindExists, "a sandbox with the id %s is there already", m.record.BoxID)
	}
	if b == nil {
		b = &box{record: m.record, path: m.path}
	}
	p.log.Error("create", "box", m.record.BoxID, "error", cause)
	if err := p.clear(context.WithoutCancel(ctx), b); err != nil {
		p.log.Error("something of a failed create is left", "box", m.record.BoxID, "error", err)
		p.add(b)
		return adapters.Wrap(adapters.KindUnknownOutcome, cause,
			"the sandbox could not be started on this machine, and something of it is left there: kill it, and see Isthmus's log")
	}
	p.forget(m.record.BoxID)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return adapters.Wrap(adapters.KindUnavailable, cause, "the sandbox could not be started under gVisor: see Isthmus's log")
}
