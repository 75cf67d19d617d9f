//go:build linux

package local

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters/local/cgroup"
)

// StartIn calls start on a thread that is in the control group and whose effective user is id, with the
// capabilities that it had; 0 leaves the user as it is.
//
// What the kernel counts by user (inotify instances and watches, signals that wait, bytes of message queues) it
// counts for a user namespace's maker as well. If root made them all, a box could use up what every other box
// and the machine's root need; made by an id that only this box has, a namespace has that count to itself.
//
// The real user stays root: it is the way back, and it keeps limits on root's processes out of the box. As with
// every change of ids, the kernel stops this process from being dumped or traced by other users: what it
// holds is secret anyway.
func StartIn(group *cgroup.Group, id uint32, start func() (*os.Process, error)) (p *os.Process, err error) {
	OnThread(func() {
		if err = group.Enter(); err != nil { // first: it asks for root
			return
		}
		if id == 0 {
			p, err = start()
			return
		}
		var caps threadCaps
		if caps, err = capabilities(); err != nil {
			return
		}
		if err = become(id, caps); err == nil {
			p, err = start()
		}
		_ = become(0, caps) // for the moment until it has ended
	})
	return p, err
}

// OnThread runs fn on a thread that ends with it, so that nobody else gets one in a box's group or with its user.
func OnThread(fn func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			fn() // the thread stays locked to this goroutine, and the runtime ends both
			return
		}
		// The first thread of a process does not end before the process. While it is held here, another is used.
		OnThread(fn)
		runtime.UnlockOSThread()
	}()
	<-done
}

// threadCaps are the capability sets of one thread, as two halves of 32 bits.
type threadCaps [2]unix.CapUserData

func capabilities() (threadCaps, error) {
	var caps threadCaps
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	err := unix.Capget(&header, &caps[0])
	return caps, err
}

// become changes the effective user of this thread only, and sets the capabilities, which that change takes or
// gives. The standard library's call of this name is for all threads.
func become(id uint32, caps threadCaps) error {
	const keep = ^uintptr(0)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, keep, uintptr(id), keep); errno != 0 {
		return fmt.Errorf("take the user id %d: %w", id, errno)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capset(&header, &caps[0]); err != nil {
		return fmt.Errorf("keep the capabilities: %w", err)
	}
	return nil
}
