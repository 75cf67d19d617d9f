package fleet

import (
	"os"
	"strings"
	"sync"
	"time"

	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/translate/placement"
)

// bootSlack is how far the times at which one kernel started may lie apart when two sandboxes tell them: each takes
// its own clock's time away from the kernel's age.
const bootSlack = 3 * time.Second

// maxKernels bounds the kernels that are remembered. When there are more, all are forgotten: that is evidence lost,
// never evidence made up.
const maxKernels = 10_000

// thisMachine stands for the sandbox where the kernel is the one that Isthmus itself runs on.
const thisMachine = "the machine of this Isthmus"

// kernels remembers on which kernels sandboxes were seen. Two that are on one kernel are kept apart by no more than
// a container, whatever their provider says. A sandbox that was restored from a copy of a machine has the copied
// machine's boot id, but not the time of its start: that alone is no contradiction.
type kernels struct {
	mu   sync.Mutex
	seen map[string]kernel
}

type kernel struct {
	sandboxID string
	booted    time.Time
}

// judge adds to what was measured what the sandbox's kernel proves.
func (k *kernels) judge(m *placement.Measured, u envd.Usage, sandboxID string) {
	m.Kernel, m.BootID = u.Kernel, u.BootID
	m.Shares = k.shares(u, sandboxID)
	switch {
	case u.GVisor: // each sandbox has a kernel of its own
		m.Isolation, m.Shares = "gvisor", ""
	case m.Shares != "":
		m.Isolation = "container"
	}
}

// shares names a sandbox that is on the same kernel, or this machine, and remembers this one.
func (k *kernels) shares(u envd.Usage, sandboxID string) string {
	if u.BootID == "" || u.Booted.IsZero() {
		return ""
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.seen == nil || len(k.seen) >= maxKernels {
		k.seen = map[string]kernel{}
		if text, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
			k.seen[strings.TrimSpace(string(text))] = kernel{sandboxID: thisMachine}
		}
	}
	before, known := k.seen[u.BootID]
	switch {
	case known && before.sandboxID == thisMachine:
		return thisMachine
	case known && before.sandboxID != sandboxID && before.booted.Sub(u.Booted).Abs() <= bootSlack:
		return before.sandboxID
	}
	k.seen[u.BootID] = kernel{sandboxID, u.Booted}
	return ""
}
