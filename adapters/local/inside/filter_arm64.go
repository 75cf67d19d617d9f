//go:build linux

package inside

import "golang.org/x/sys/unix"

// auditArch is the architecture whose numbers the filter's list holds.
const auditArch = unix.AUDIT_ARCH_AARCH64

var refusedHere []uint32
