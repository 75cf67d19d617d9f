//go:build linux

package local

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters"
)

// Describe returns what this machine can do.
func (l *Local) Describe() adapters.Description { return l.description }

// describe works it out once, at the start.
func (l *Local) describe() adapters.Description {
	unenforced := l.cgroups.Unenforced()
	if !l.disks {
		unenforced = append(unenforced, "disk")
	}
	if !l.tier.root {
		unenforced = append(unenforced, "counters") // all boxes have one user of the machine's, by whom the kernel counts
	}
	d := adapters.Description{
		Provider: "local", Isolation: "container", Tier: l.tier.String(), Unenforced: unenforced, InternetOff: true,
		SeenAtOnce: true, Max: Largest(l.config.Max, l.dir),
	}
	d.Capabilities = l.capabilities()
	if l.tier.bare {
		d.Isolation, d.Weak, d.InternetOff = "process", true, false
	}
	return d
}

// capabilities are what depends on this machine.
func (l *Local) capabilities() []adapters.Capability {
	state := func(feature adapters.Feature, value string) adapters.Capability {
		return adapters.Capability{Feature: feature, Value: value, Source: "adapter", Evidence: adapters.Verified}
	}
	pause, snapshot := string(adapters.LevelFilesystem), adapters.None
	if l.tier.bare {
		pause = adapters.None
	}
	if l.copies() {
		snapshot = string(adapters.LevelFilesystem)
	}
	list := []adapters.Capability{state(adapters.FeaturePause, pause), state(adapters.FeatureSnapshot, snapshot)}
	keeps := adapters.No
	if l.listens() {
		keeps = adapters.Yes
	}
	for _, feature := range []adapters.Feature{
		adapters.FeatureEgressLists, adapters.FeatureAllowCIDRs, adapters.FeatureDenyCIDRs, adapters.FeatureAllowDomains, adapters.FeatureLiveNetwork,
	} {
		list = append(list, state(feature, keeps))
	}
	return append(list, state(adapters.FeatureInjectHeaders, adapters.No))
}

var _ adapters.Wrapper = (*Local)(nil)

// Powers are those that this machine's tier has.
func (l *Local) Powers() adapters.Powers {
	powers := adapters.Powers{Extender: l, Meter: l, Journal: l, Watcher: l, Stocker: l}
	if !l.tier.bare {
		powers.Pauser = l
	}
	if l.copies() {
		powers.Snapshotter = l
	}
	if l.listens() {
		powers.Networker = l
	}
	return powers
}

// Largest fills what the configuration leaves open with what the machine has.
func Largest(most adapters.Resources, dir string) adapters.Resources {
	if most.CPU == 0 {
		most.CPU = max(runtime.NumCPU(), DefaultResources().CPU)
	}
	var info unix.Sysinfo_t
	if most.MemoryMB == 0 && unix.Sysinfo(&info) == nil {
		most.MemoryMB = int(info.Totalram * uint64(info.Unit) >> 20)
	}
	var fs unix.Statfs_t
	if most.DiskMB == 0 && unix.Statfs(dir, &fs) == nil {
		most.DiskMB = max(int(int64(fs.Blocks)*fs.Frsize>>20), DefaultResources().DiskMB)
	}
	return most
}

// DefaultResources are the sizes of every template.
func DefaultResources() adapters.Resources {
	return adapters.Resources{CPU: 2, MemoryMB: 1024, DiskMB: 10 * 1024}
}

// Resolve finds a template by name, or by the id that it gave before.
func (l *Local) Resolve(ctx context.Context, name string) (adapters.Template, error) {
	root, err := l.rootOf(ctx, name)
	if err != nil {
		return adapters.Template{}, err
	}
	return adapters.Template{ID: TemplateID(root.Name), Name: root.Name, Version: l.version(root), Resources: DefaultResources(), EnvVars: root.Env}, nil
}

// version names all that a box has from its start and keeps: an image that was built again, and another envd,
// lie at other paths.
func (l *Local) version(root Root) string {
	sum := sha256.Sum256(fmt.Append(nil, root.Layers, l.tools, l.envd, l.tier, l.disks, l.ipv6, l.config.Processes, l.config.NoLoopback))
	return hex.EncodeToString(sum[:8])
}

// TemplateID is the id of the template of a name: 20 characters of [a-z0-9] that stay the same for one name.
func TemplateID(name string) string {
	sum := sha256.Sum256([]byte("template " + name))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:20]
}
