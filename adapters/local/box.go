//go:build linux

package local

import (
	"context"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local/egress"
	"github.com/isthmus/isthmus/adapters/local/proc"
)

// The names of the two sockets in a box's folder.
const (
	socketService  = "e"
	socketHandover = "h"
)

// box is one box that this process knows: made by it, or adopted.
type box struct {
	role   atomic.Pointer[role]
	folder *os.File // the same, opened: sockets are reached through it, whose paths may have 107 bytes only
	pidfd  *os.File
	client *http.Client // to envd's own routes

	// ended is closed when PID 1 is gone and with it every process of the box; told as well, unless that was a pause,
	// which is no end to those who watch the box.
	ended, told chan struct{}
	// unwatched is closed when nobody waits for the end any more: it came, or this process lets go.
	unwatched chan struct{}
	// leading is held while what the box may reach changes, and while its traffic is opened; traffic is what carries it
	// now, nil: nothing does.
	leading sync.Mutex
	traffic *egress.Egress

	// extending is held, by whoever has put something in, while the daemon is told its end; until is what it was told
	// last, zero: that is not known.
	extending chan struct{}
	until     time.Time
	// sample is the last one that was measured; nil: none was.
	sample atomic.Pointer[adapters.Sample]

	// attended ends with the box, and when this process lets go of it; work is what runs until then.
	attended context.Context
	leave    context.CancelFunc
	work     sync.WaitGroup
}

// role is what a box serves as. It is replaced once, when a box that was made ahead is claimed.
type role struct {
	record             record
	path               string // its folder
	transport, control string
}

// as returns the box's present role.
func (b *box) as() *role { return b.role.Load() }

// newBox makes the value for a box whose PID 1 runs. It takes the pidfd over.
func newBox(r role, pidfd int) (*box, error) {
	folder, err := os.Open(r.path)
	if err != nil {
		_ = unix.Close(pidfd)
		return nil, err
	}
	b := &box{
		folder: folder, extending: make(chan struct{}, 1),
		pidfd: os.NewFile(uintptr(pidfd), "pidfd"),
		ended: make(chan struct{}), told: make(chan struct{}), unwatched: make(chan struct{}),
	}
	b.role.Store(&r)
	b.client = &http.Client{Transport: &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return b.dial(ctx, socketService) },
		DisableKeepAlives: true,
	}}
	return b, nil
}

// dial connects to one of the box's sockets. The folder stays open while it does: a closed descriptor's
// number could be another box's by then.
func (b *box) dial(ctx context.Context, socket string) (net.Conn, error) {
	raw, err := b.folder.SyscallConn()
	if err != nil {
		return nil, err
	}
	var c net.Conn
	var d net.Dialer
	refused := raw.Control(func(fd uintptr) { c, err = d.DialContext(ctx, "unix", socketPath(fd, socket)) })
	if refused != nil {
		return nil, gone(b.as().record.BoxID)
	}
	return c, err
}

// socketPath is a path short enough for any folder.
func socketPath(folder uintptr, socket string) string {
	return "/proc/self/fd/" + strconv.Itoa(int(folder)) + "/" + socket
}

// alive reports whether PID 1 still runs.
func (b *box) alive() bool {
	select {
	case <-b.ended:
		return false
	default:
		return true
	}
}

// describe is the box as the contract sees it.
func (b *box) describe() adapters.Box {
	return adapters.Box{
		ID: b.as().record.BoxID, Attempt: b.as().record.Attempt, Deployment: b.as().record.Deployment,
		SandboxID: b.as().record.SandboxID, CreatedAt: b.as().record.CreatedAt, Alive: b.alive(),
	}
}

// wait returns when PID 1 has ended, or ctx. It parks in the runtime's poller: no thread for each box.
func (b *box) wait(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = b.pidfd.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	raw, err := b.pidfd.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Read(func(fd uintptr) bool { return proc.Ended(int(fd)) })
}

// close gives back what this process holds of the box; the box itself is left alone.
func (b *box) close() {
	_ = b.pidfd.Close()
	_ = b.folder.Close()
}
