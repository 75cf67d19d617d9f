//go:build linux

package local

import (
	"context"
	"log/slog"
	"net/netip"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local/egress"
)

// Config says how boxes are made on this machine.
type Config struct {
	// DataDir is the data folder; everything of this package is in its folder "local". It must lie on a
	// file system that can hold the upper layer of an overlay (not on an overlay).
	DataDir string
	// EnvdPath and SudoPath are the static binaries that go into boxes; empty: those that this binary carries,
	// or the ones beside it.
	EnvdPath, SudoPath string
	// Isolation asks for a weaker tier by name: "ns" (root without user namespaces) or "process" (none).
	// Empty: user namespaces, or Open refuses.
	Isolation string
	// Max is the largest box; zero fields: the whole machine.
	Max adapters.Resources
	// Machine are the ceilings over all boxes together.
	Machine Ceiling
	// Secrets derives the two secrets of a box from its id, as the fleet does for Spec.Envd. A restarted
	// facade reaches the daemon with them.
	Secrets func(boxID string) (transport, control string)
	// Images resolves template names.
	Images Images
	// NoEgress is for machines on which boxes cannot be given the internet: they have loopback only then,
	// whatever a create asks for. Otherwise Open refuses such a machine.
	NoEgress bool
	// AllowPrivate are private ranges that boxes may reach beside public addresses.
	AllowPrivate []netip.Prefix
	// Resolvers answer the boxes' name look-ups; none: those of this machine.
	Resolvers []netip.AddrPort
	// Interceptor finds who takes over connections of a box by the host that they name, asked when a box's rules are set;
	// nil: all pass as they are.
	Interceptor func(boxID string) egress.Interceptor
	// FirstID is the first host user id that is leased to boxes when running as root; zero: 0x70000000,
	// above the ranges that distributions and service managers hand out.
	FirstID uint32
	// LastID is the last one, where another Local of this machine begins behind it; zero: there is none.
	LastID uint32
	// NoLoopback leaves envd's listener on 127.0.0.1:49983 inside boxes away: only the facade reaches envd then, and
	// the address is free for programs of the box.
	NoLoopback bool
	// Neighbours are the data folders of other Locals of this machine, past ones too. Ids that their boxes have at
	// the start are leased to none of ours.
	Neighbours []string
	// Processes limits the processes of each user of a box, and twice as many those of the box; zero: 4096.
	Processes int
	// KeepFreeMB is how much of the disk stays free, in MiB: below it no box is made. Less than 256 is 256.
	KeepFreeMB int
	// Logger gets what happens in the background; nil: nothing is logged.
	Logger *slog.Logger
}

// Ceiling bounds all boxes of this machine together. Zero fields are unbounded: sizes of boxes are ceilings
// of their own, not reservations.
type Ceiling struct {
	Boxes    int
	CPU      int
	MemoryMB int
	DiskMB   int
}

// Images finds the root file system of a template.
type Images interface {
	// Root returns the root file system of a template, or KindNotFound with the names that exist.
	Root(ctx context.Context, name string) (Root, error)
}

// Root is an unpacked root file system, ready to be a box's lower layers.
type Root struct {
	// Name is the template's name; aliases of one image have one name.
	Name string
	// Layers are folders, from the lowest to the highest. The tools of Isthmus come on top by themselves.
	Layers []string
	// Env are the image's own environment variables.
	Env map[string]string
}
