//go:build linux

// Package inside is what PID 1 of a local box does before it becomes envd: it takes the folder, sockets and
// layers that the facade hands over, builds the box's own root file system and network, gives up every way
// to the host, loads the seccomp filter, and then serves.
//
// PID 1 holds no descriptor of a host folder, has no parent-death signal and does not notice the end of the
// facade: a restarted facade finds it by the sockets in the box's folder.
package inside

import (
	"time"

	"github.com/isthmus/isthmus/envd"
)

// The descriptors that PID 1 starts with: standard streams on /dev/null, the control connection, and the
// executable itself, which is opened by the facade so that no path to it must be reachable for the box's ids.
const (
	FDControl = 3
	FDSelf    = 4
)

// Setup is the facade's first and only message. Its descriptors are, in this order: the
// bound service socket, the bound handover socket, what holds the writable layer (DirUpper and DirWork), then
// the layers from the lowest to the highest.
type Setup struct {
	Envd     envd.Config `json:"envd"`
	Hostname string      `json:"hostname"`
	// Internet asks for the sockets that carry the box's traffic; without it only loopback is up.
	Internet bool `json:"internet"`
	// IPv6 asks for IPv6 beside IPv4, where there is the internet or will be, which only a host that has a way there should.
	IPv6 bool `json:"ipv6"`
	// SharedMemory is the size of /dev/shm in bytes.
	SharedMemory int64 `json:"sharedMemory"`
	// Layers is the number of root file system layers.
	Layers int `json:"layers"`
	// Mounts says that the writable layer and the others are detached mounts; else they are folders, which
	// PID 1 can reach by their names.
	Mounts bool `json:"mounts"`
	// SwitchIDs says that PID 1 must still become root of its user namespace, because the maps were written
	// after it started.
	SwitchIDs bool `json:"switchIDs"`
	// Remove makes no box: the folder of this path, with files of all of a box's users, is removed, and
	// Ready says how that went.
	Remove string `json:"remove,omitempty"`
	// Bare makes no box either: envd serves as an ordinary process, and this folder holds its etc/passwd and
	// its run. Only the two sockets are handed over.
	Bare string `json:"bare,omitempty"`
	// Stocked says that the box is made ahead: Envd holds a control secret and a deadline only, and PID 1
	// serves once a Claim says what it becomes.
	Stocked bool `json:"stocked,omitempty"`
	// NoLoopback says that nothing listens on envd's port inside the box.
	NoLoopback bool `json:"noLoopback,omitempty"`
	// Processes limits the processes of each user of the box, PID 1 not among them.
	Processes uint64 `json:"processes"`
	// BootID is what the kernel calls its start. PID 1 reads it before the box gets one of its own.
	BootID string `json:"-"`
	// Data limits the data segment of each process in bytes; 0: the cgroup limits memory.
	Data uint64 `json:"data,omitempty"`
}

// Ready is PID 1's answer: an empty Error says that the sockets are listening. The descriptors beside it are
// those of the box's traffic.
type Ready struct {
	Error string `json:"error,omitempty"`
}

// Claim opens the handover socket: Secret is the box's control secret. The answer is a Ready with the
// descriptors of the box's traffic.
type Claim struct {
	Secret string `json:"secret"`
	// Become is what a stocked box is from now on, once.
	Become *Become `json:"become,omitempty"`
	// Open asks for the sockets of the box's traffic where there are none yet.
	Open bool `json:"open,omitempty"`
	// Until is how long a stocked box waits for that from now on.
	Until time.Time `json:"until,omitzero"`
}

// Become is the part of Setup that is not known when a box is made ahead.
type Become struct {
	Envd     envd.Config `json:"envd"`
	Hostname string      `json:"hostname"`
}
