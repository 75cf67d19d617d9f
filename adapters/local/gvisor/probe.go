//go:build linux

package gvisor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/bootstrap"
	"github.com/isthmus/isthmus/adapters/local"
	"github.com/isthmus/isthmus/envd"
)

// probeTime bounds the throw-away box.
const probeTime = 60 * time.Second

// probe runs envd in a real box, on an empty root file system with a network: only that shows that gVisor, the
// control groups and the network work together here.
func (p *place) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	m := newMaker(p, adapters.Spec{
		BoxID: "probe" + strings.ToLower(rand.Text()), Resources: adapters.Resources{CPU: 1, MemoryMB: 256, DiskMB: 16}, Network: adapters.Network{Internet: true},
	}, local.Root{Name: "probe", Layers: []string{""}})
	err := m.tryEnvd(ctx)
	if left := p.clear(context.WithoutCancel(ctx), &box{record: m.record, path: m.path}); left != nil {
		err = errors.Join(err, fmt.Errorf("remove the probe: %w", left))
	}
	if err == nil {
		return nil
	}
	return adapters.Errorf(adapters.KindUnsupported, "no sandbox can be made under gVisor on this machine: %w. Leave isolation empty for user namespaces, or see `isthmus doctor`", err)
}

func (m *maker) tryEnvd(ctx context.Context) error {
	if err := m.folders(); err != nil {
		return err
	}
	m.root.Layers[0] = filepath.Join(m.path, dirDisk) // it is empty
	for _, step := range []func() error{m.limits, m.plug} {
		if err := step(); err != nil {
			return err
		}
	}
	defer func() { _ = m.unplug() }()
	what := m.bundle()
	what.Process.Args = []string{bootstrap.Path, "version"}
	if err := m.write(what); err != nil {
		return err
	}
	args := append(m.place.flags(m.record.BoxID, m.record), "run", "--bundle="+m.path, m.record.BoxID)
	cmd := exec.CommandContext(ctx, m.place.runsc, args...)
	var out strings.Builder
	cmd.Stdout = &out
	if err := startIn(cmd, m.record.Cgroup); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("runsc: %w: %s", err, m.said())
	}
	if got := strings.TrimSpace(out.String()); got != envd.Version {
		return fmt.Errorf("envd is %q there, and should be %q", got, envd.Version)
	}
	return nil
}
