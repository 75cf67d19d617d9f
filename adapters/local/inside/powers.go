//go:build linux

package inside

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// needless are capabilities that no program of the box gets, its root included. Most are without effect in a
// user namespace by now; CAP_NET_ADMIN is not: with it root fills tables of the kernel that are one for the
// whole machine (neighbours of interfaces), and its sockets may hold more memory than others.
var needless = []uintptr{
	unix.CAP_NET_ADMIN, unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO, unix.CAP_SYS_BOOT, unix.CAP_SYS_TIME, unix.CAP_SYS_PACCT,
	unix.CAP_SYS_TTY_CONFIG, unix.CAP_SYSLOG, unix.CAP_WAKE_ALARM, unix.CAP_BLOCK_SUSPEND, unix.CAP_LINUX_IMMUTABLE,
	unix.CAP_MAC_ADMIN, unix.CAP_MAC_OVERRIDE, unix.CAP_AUDIT_CONTROL, unix.CAP_AUDIT_READ, unix.CAP_PERFMON, unix.CAP_BPF,
	unix.CAP_CHECKPOINT_RESTORE,
}

// powers takes them from everything that this process starts. It keeps them itself: it makes the sockets of the
// box's traffic. A thread of it may start programs, so all of them change.
func powers() error {
	if err := inheritNone(); err != nil {
		return err
	}
	for _, c := range needless {
		_, _, errno := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0)
		if errno != 0 && !errors.Is(errno, unix.EINVAL) { // an older kernel does not know the newest
			return fmt.Errorf("drop capability %d: %w", c, errno)
		}
	}
	return nil
}

// inheritNone clears the capabilities that would come through an exec whatever the bounding set says.
func inheritNone() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if err := unix.Capget(&header, &caps[0]); err != nil {
		return fmt.Errorf("read capabilities: %w", err)
	}
	caps[0].Inheritable, caps[1].Inheritable = 0, 0
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&caps[0])), 0)
	if errno != 0 {
		return fmt.Errorf("clear inheritable capabilities: %w", errno)
	}
	return nil
}
