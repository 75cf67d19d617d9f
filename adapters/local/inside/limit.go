//go:build linux

package inside

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// What each user of the box can have waiting in the kernel, as a small machine would allow.
const (
	pendingSignals = 8192      // signals and timers
	messageQueues  = 800 << 10 // bytes
)

// limit sets what every process of the box inherits. No core files: the host's core pattern may start a
// program of the host's with them.
func limit(s Setup) error {
	limits := map[int]uint64{
		unix.RLIMIT_CORE: 0, unix.RLIMIT_SIGPENDING: pendingSignals, unix.RLIMIT_MSGQUEUE: messageQueues,
	}
	if s.Data > 0 {
		limits[unix.RLIMIT_DATA] = s.Data
	}
	for which, value := range limits {
		var now unix.Rlimit
		if err := unix.Getrlimit(which, &now); err != nil {
			return fmt.Errorf("resource limit %d: %w", which, err)
		}
		value = min(value, now.Max) // only the host's root may go above it
		if err := unix.Setrlimit(which, &unix.Rlimit{Cur: value, Max: value}); err != nil {
			return fmt.Errorf("resource limit %d: %w", which, err)
		}
	}
	return nil
}
