//go:build linux

package local

import (
	"context"
	"fmt"
	"os"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local/subid"
)

// The words of Config.Isolation.
const (
	isolationNamespaces = "ns"
	isolationProcess    = "process"
)

// tier is the way in which boxes are separated from the machine.
type tier struct {
	// root says that this process is root: ranges of ids, id-mapped layers, disks and control groups can
	// be had. Without it one range of subordinate ids is shared by all boxes.
	root        bool
	subordinate subid.Ranges
	// bare says that boxes are not separated at all: each is a process of ours with a folder as its home.
	bare bool
}

// chooseTier finds the strongest tier that this machine can have by its looks; the probe then tries it.
func chooseTier(isolation string) (tier, error) {
	switch isolation {
	case "":
	case isolationProcess:
		return tier{bare: true}, nil
	case isolationNamespaces:
		return tier{}, adapters.Errorf(adapters.KindUnsupported, "isolation %q is not built yet: leave it empty for user namespaces", isolation)
	default:
		return tier{}, adapters.Errorf(adapters.KindInvalid, "isolation %q is unknown: leave it empty for user namespaces, or say %q or %q",
			isolation, isolationNamespaces, isolationProcess)
	}
	if os.Getuid() == 0 {
		return tier{root: true}, nil
	}
	s, err := subid.Find()
	if err != nil {
		return tier{}, adapters.Errorf(adapters.KindUnsupported, "sandboxes of an ordinary user need subordinate ids: %w", err)
	}
	return tier{subordinate: s}, nil
}

// shared says that ids are mapped after the start, from the one range that all boxes of an ordinary user
// share.
func (t tier) shared() bool { return !t.root && !t.bare }

// writeMaps gives a process its ids, unless it had them from the start.
func (t tier) writeMaps(ctx context.Context, pid int) error {
	if !t.shared() {
		return nil
	}
	return t.subordinate.Write(ctx, pid)
}

// String is the tier in words.
func (t tier) String() string {
	switch {
	case t.bare:
		return "no isolation: processes of this user"
	case t.root:
		return "user namespace as root"
	}
	return fmt.Sprintf("user namespace with subordinate ids from %d", t.subordinate.FirstUID)
}
