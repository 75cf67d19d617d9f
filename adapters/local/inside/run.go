//go:build linux

package inside

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters/local/inside/handover"
	"github.com/isthmus/isthmus/envd"
)

// Serve is the daemon: it accepts on both listeners until its end.
type Serve func(ctx context.Context, s Setup, facade, loopback net.Listener) error

// backlog is how many connections wait while PID 1 is busy.
const backlog = 512

// Run makes the box around this process, which must be PID 1 of new namespaces, and then serves. It returns
// when the daemon ended or the set-up failed; the process must exit then, which ends the box.
func Run(ctx context.Context, serve Serve) error {
	// Nothing inside may end the box by a signal. They are caught and dropped, not ignored: what is ignored
	// stays ignored in every program that envd starts.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
		syscall.SIGPIPE, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGXCPU)
	unix.Umask(0) // the modes below are meant
	_ = unix.Close(FDSelf)
	control, err := handover.Conn(FDControl)
	if err != nil {
		return fmt.Errorf("control connection: %w", err)
	}
	defer func() { _ = control.Close() }()
	var s Setup
	fds, err := handover.Receive(control, &s)
	if err != nil {
		return fmt.Errorf("set-up message: %w", err)
	}
	if s.Remove != "" {
		return handover.Send(control, remove(s))
	}
	if s.Bare == "" {
		s.BootID = bootID()
	}
	b, err := build(s, fds)
	if err != nil {
		return errors.Join(err, handover.Send(control, Ready{Error: err.Error()}))
	}
	if err := handover.Send(control, Ready{}, b.traffic.descriptors()...); err != nil {
		return fmt.Errorf("ready: %w", err)
	}
	_ = control.Close()
	unix.Umask(0o022)
	h := &hand{traffic: b.traffic, secret: s.Envd.Control}
	if s.Stocked {
		h.stocked()
	}
	become, until := h.become, h.until
	go h.serve(b.handover)
	if s.Stocked {
		next, err := await(become, until, s.Envd.Deadline)
		if err != nil {
			return err
		}
		s.Envd, s.Hostname = next.Envd, next.Hostname
	}
	return serve(ctx, s, b.facade, b.loopback)
}

// built is what remains of the set-up.
type built struct {
	facade, loopback net.Listener
	handover         *net.UnixListener
	traffic          *traffic
}

// bare is the set-up where nothing is separated. Orphans come to this process, so that all that a box
// started can be found below it.
func bare(fds []int) (*built, error) {
	if len(fds) != 2 {
		return nil, fmt.Errorf("set-up message: %d descriptors instead of 2", len(fds))
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, err
	}
	return listen(descriptors{service: fds[0], handover: fds[1]})
}

// build does all steps in the order in which each is still possible: the network while the old root is
// there, the mounts, the way back, the filter last but for listening.
func build(s Setup, fds []int) (*built, error) {
	if s.Bare != "" {
		return bare(fds)
	}
	d, err := assign(s, fds)
	if err != nil {
		return nil, err
	}
	if s.SwitchIDs {
		if err := becomeRoot(); err != nil {
			return nil, err
		}
	}
	if err := ownGroups(); err != nil {
		return nil, err
	}
	traffic, err := network(s)
	if err != nil {
		return nil, err
	}
	if err := files(s, d); err != nil {
		return nil, err
	}
	if err := limit(s); err != nil {
		return nil, err
	}
	if err := powers(); err != nil {
		return nil, err
	}
	if err := filter(); err != nil {
		return nil, err
	}
	b, err := listen(d)
	if err != nil {
		return nil, err
	}
	b.traffic = traffic
	if s.NoLoopback {
		return b, nil
	}
	b.loopback, err = net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(envd.Port)))
	if err != nil {
		return nil, fmt.Errorf("loopback listener: %w", err)
	}
	return b, nil
}

// listen makes the listeners of the two sockets. The facade bound them; that listen(2) is called here makes
// this process the peer that SO_PEERCRED names.
func listen(d descriptors) (*built, error) {
	facade, err := listener(d.service)
	if err != nil {
		return nil, fmt.Errorf("service socket: %w", err)
	}
	hl, err := listener(d.handover)
	if err != nil {
		return nil, fmt.Errorf("handover socket: %w", err)
	}
	unixListener, ok := hl.(*net.UnixListener)
	if !ok {
		return nil, errors.New("handover socket: not a unix socket")
	}
	return &built{facade: facade, handover: unixListener}, nil
}

func listener(fd int) (net.Listener, error) {
	if err := unix.Listen(fd, backlog); err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "listener")
	defer func() { _ = f.Close() }()
	return net.FileListener(f)
}

// descriptors are the handed-over ones by their meaning.
type descriptors struct {
	service, handover, writable int
	layers                      []int
}

func assign(s Setup, fds []int) (descriptors, error) {
	if s.Layers < 1 || len(fds) != 3+s.Layers {
		return descriptors{}, fmt.Errorf("set-up message: %d descriptors for %d layers", len(fds), s.Layers)
	}
	return descriptors{service: fds[0], handover: fds[1], writable: fds[2], layers: fds[3:]}, nil
}

// remove does what Setup.Remove asks for.
func remove(s Setup) Ready {
	if s.SwitchIDs {
		if err := becomeRoot(); err != nil {
			return Ready{Error: err.Error()}
		}
	}
	if err := os.RemoveAll(s.Remove); err != nil {
		return Ready{Error: err.Error()}
	}
	return Ready{}
}

// becomeRoot takes the ids of the user namespace's root. The capabilities came over the exec as ambient
// ones, because the maps were not written yet; from here on they belong to uid 0 only.
func becomeRoot() error {
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("setgroups: %w", err)
	}
	if err := syscall.Setresgid(0, 0, 0); err != nil {
		return fmt.Errorf("setresgid: %w", err)
	}
	if err := syscall.Setresuid(0, 0, 0); err != nil {
		return fmt.Errorf("setresuid: %w", err)
	}
	_, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("clear ambient capabilities: %w", errno)
	}
	return nil
}

// ownGroups makes the control groups that this process is in by now the only ones that the box sees, as "/".
// Every thread gets a namespace of its own: any of them may start what runs in the box.
func ownGroups() error {
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_UNSHARE, unix.CLONE_NEWCGROUP, 0, 0)
	if errno != 0 {
		return fmt.Errorf("namespace of control groups: %w", errno)
	}
	return nil
}
