package daemon

import (
	"runtime/debug"

	"github.com/isthmus/isthmus/envd"
)

// leastMemory is what the daemon may always have before it tries hard to need less, in bytes.
const leastMemory = 64 << 20

// BoundMemory makes this process keep no more garbage than a quarter of the box's memory has place for. The limit is
// the runtime's soft one: what is in use goes above it.
func BoundMemory(c envd.Config) {
	if c.MemoryBytes > 0 {
		debug.SetMemoryLimit(max(c.MemoryBytes/4, leastMemory))
	}
}
