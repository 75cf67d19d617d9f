//go:build linux

package gvisor

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/isthmus/isthmus/adapters/bootstrap"
	"github.com/isthmus/isthmus/adapters/local/egress/inside"
)

// bundleName is where runsc looks.
const bundleName = "config.json"

// openFiles is the limit on descriptors of a process in a box.
const openFiles = 1 << 20

// first is the first program of a box: it says who the box is, as files, and becomes envd, whose configuration is
// on its standard input. The files are replaced, not written through: an image's link would lead elsewhere.
const first = `set -e
rm -f /etc/hostname /etc/hosts /etc/resolv.conf
echo "$0" > /etc/hostname
printf '127.0.0.1 localhost %%s\n::1 localhost ip6-localhost ip6-loopback\n' "$0" > /etc/hosts
printf 'nameserver %[1]s\noptions timeout:5 attempts:2\n' > /etc/resolv.conf
mkdir -m 1777 /run/lock
exec %[2]s serve --config-fd 0 --listen unix:%[3]s --loopback 127.0.0.1:49983`

// writeBundle writes the description of the box that runsc reads, config.json in the box's folder.
func (m *maker) writeBundle() error { return m.write(m.bundle()) }

func (m *maker) write(what *specs.Spec) error {
	body, err := json.Marshal(what)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(m.path, bundleName), body, 0o600)
}

func (m *maker) bundle() *specs.Spec {
	program := fmt.Sprintf(first, inside.Resolver, bootstrap.Path, bootstrap.Socket)
	namespaces := []specs.LinuxNamespace{
		{Type: specs.PIDNamespace}, {Type: specs.MountNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace},
	}
	if m.network != nil {
		namespaces = append(namespaces, specs.LinuxNamespace{Type: specs.NetworkNamespace, Path: m.network.path()})
	}
	return &specs.Spec{
		Version:  specs.Version,
		Hostname: m.record.BoxID,
		Root:     &specs.Root{Path: m.root.Layers[0]},
		Process: &specs.Process{
			Args: []string{"/bin/sh", "-c", program, m.record.BoxID}, Cwd: "/",
			Env:          []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"},
			Capabilities: powers(),
			Rlimits: []specs.POSIXRlimit{
				{Type: "RLIMIT_NOFILE", Soft: openFiles, Hard: openFiles}, {Type: "RLIMIT_CORE"},
			},
		},
		Mounts: m.mounts(),
		Linux:  &specs.Linux{Namespaces: namespaces},
	}
}

// mounts are those of every box, and our two programs.
func (m *maker) mounts() []specs.Mount {
	memory := fmt.Sprintf("size=%dm", max(m.record.Resources.MemoryMB/2, 1))
	return []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc"},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs"},
		{Destination: "/dev/shm", Type: "tmpfs", Source: "shm", Options: []string{"nosuid", "nodev", "mode=1777", memory}},
		{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev", "ro"}},
		{Destination: "/run", Type: "tmpfs", Source: "run", Options: []string{"nosuid", "nodev", "mode=755", "size=64m"}},
		{Destination: filepath.Dir(bootstrap.Socket), Type: "tmpfs", Source: "run", Options: []string{"nosuid", "nodev", "noexec", "mode=700", "size=1m"}},
		{Destination: bootstrap.Path, Type: "bind", Source: m.place.envd, Options: []string{"ro", "nosuid"}},
		{Destination: "/usr/bin/sudo", Type: "bind", Source: m.place.sudo, Options: []string{"ro"}},
	}
}

// powers are the capabilities of the box's root, in its own kernel. Those that it lacks are what gVisor passes on to
// the host in part (raw sockets), or what only a machine's administrator needs.
func powers() *specs.LinuxCapabilities {
	names := strings.Fields(`CAP_CHOWN CAP_DAC_OVERRIDE CAP_DAC_READ_SEARCH CAP_FOWNER CAP_FSETID CAP_KILL CAP_SETGID CAP_SETUID CAP_SETPCAP
		CAP_NET_BIND_SERVICE CAP_IPC_LOCK CAP_IPC_OWNER CAP_SYS_CHROOT CAP_SYS_PTRACE CAP_SYS_NICE CAP_SYS_RESOURCE CAP_MKNOD CAP_LEASE
		CAP_AUDIT_WRITE CAP_SETFCAP`)
	return &specs.LinuxCapabilities{Bounding: names, Effective: names, Permitted: names}
}
