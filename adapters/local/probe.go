//go:build linux

package local

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
)

// probeTime bounds the making of the throw-away box.
const probeTime = 20 * time.Second

// probe makes a real box in the data folder, on an empty root file system, and removes it: only that shows
// that kernel, file system and limits work together.
func (l *Local) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	empty, err := os.MkdirTemp(l.dir, "probe-")
	if err != nil {
		return err
	}
	defer func() { _ = l.removeAll(context.WithoutCancel(ctx), empty) }()
	if err := os.Chmod(empty, 0o755); err != nil {
		return err
	}
	id := "probe" + strings.ToLower(rand.Text())
	err = l.tryBox(ctx, id, filepath.Clean(empty))
	if err == nil {
		return nil
	}
	return adapters.Errorf(adapters.KindUnsupported, "no sandbox can be made in the data folder (%s): %w. %s", l.tier, err, advice(err))
}

func (l *Local) tryBox(ctx context.Context, id, root string) error {
	small := adapters.Resources{CPU: 1, MemoryMB: 128, DiskMB: 16}
	m := newMaker(l, adapters.Spec{
		BoxID: id, Deployment: "probe", Resources: small, Network: adapters.Network{Internet: true},
		Envd: envd.Config{SandboxID: id, Transport: rand.Text(), Control: rand.Text(), Deadline: time.Now().Add(probeTime)},
	}, Root{Name: "probe", Layers: []string{root}})
	b, err := m.run(ctx)
	if left := l.clear(ctx, m.remains(b)); left != nil && err == nil {
		err = fmt.Errorf("remove the probe: %w", left)
	}
	return err
}

// advice names what usually mends a failure.
func advice(err error) string {
	text := err.Error()
	for _, known := range []struct{ sign, mend string }{
		{"no space left on device", "User namespaces are switched off: set the sysctl user.max_user_namespaces to more than 0"},
		{"start PID 1: fork/exec", "User namespaces are refused here: check the sysctls user.max_user_namespaces, kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns, and in a container its seccomp profile"},
		{"/proc (", "In Docker, start the container with --security-opt systempaths=unconfined"},
		{"overlay", "The data folder must lie on a file system such as ext4, xfs or btrfs, not on an overlay: in Docker, put it on a volume"},
		{"egress", "The kernel needs nf_tables with nft_tproxy to give boxes the internet: load them, or set local.egress to none"},
		{"mkfs.ext4", "Install the package e2fsprogs"},
	} {
		if strings.Contains(text, known.sign) {
			return known.mend
		}
	}
	return "`isthmus doctor` says more"
}
