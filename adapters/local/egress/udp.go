package egress

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxDatagram = 65535
	// maxWaiting is how many datagrams of a flow wait while it is being set up; more are lost, as UDP may.
	maxWaiting = 16
)

// flowKey is a program's socket in the box and the address outside that it sends to.
type flowKey struct{ box, outside netip.AddrPort }

// flows are the UDP flows of one box. The shared socket of the box sees a flow's first datagrams only: then
// the flow has a connected socket of its own, which the kernel prefers.
type flows struct {
	egress  *Egress
	sockets *flowSockets
	wait    sync.WaitGroup
	mu      sync.Mutex
	live    map[flowKey]*flow
}

type flow struct {
	key    flowKey
	idle   time.Duration
	cancel context.CancelFunc
	used   atomic.Int64 // when the last datagram passed, in Unix nanoseconds

	mu      sync.Mutex
	waiting [][]byte
	outside *net.UDPConn // nil while the flow is being set up
}

// read takes datagrams from the box's shared socket until ctx ends.
func (fs *flows) read(ctx context.Context, c *net.UDPConn) error {
	for {
		err := fs.readOne(ctx, c)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		} // else it is an error of one datagram
	}
}

// readOne takes one datagram.
func (fs *flows) readOne(ctx context.Context, c *net.UDPConn) error {
	if err := readable(c); err != nil {
		return err
	}
	b := fs.egress.buffers.Get().(*[maxDatagram]byte)
	defer fs.egress.buffers.Put(b)
	var oob [128]byte
	n, oobn, _, from, err := c.ReadMsgUDPAddrPort(b[:], oob[:])
	if err != nil {
		return err
	}
	to, ok := originalDestination(oob[:oobn])
	if !ok || to.Port() == 0 {
		return nil
	}
	from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	if f := fs.find(ctx, flowKey{box: from, outside: to}); f != nil {
		f.send(b[:n])
	}
	return nil
}

// find returns the flow, begun when it is new, or nil when the policy refuses it or there is no room for it.
func (fs *flows) find(ctx context.Context, key flowKey) *flow {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f := fs.live[key]; f != nil {
		return f
	}
	if fs.egress.policy.Load().decide(key.outside.Addr()) != allowed || reachable(key.outside.Addr()) != nil {
		return nil
	}
	if len(fs.live) >= maxFlows {
		fs.evict()
	}
	if !fs.egress.share.take() {
		fs.evict() // this datagram is lost, for one that is sent again there is room
		return nil
	}
	own, cancel := context.WithCancel(ctx)
	f := &flow{key: key, idle: idleFlow, cancel: cancel}
	if key.outside.Port() == 53 {
		f.idle = idleQuery
	}
	f.touch()
	fs.live[key] = f
	fs.wait.Go(func() {
		defer fs.egress.share.give()
		defer fs.remove(f)
		defer cancel()
		fs.run(own, f)
	})
	return f
}

// cut ends the flows to addresses that may not be reached any more.
func (fs *flows) cut(may func(netip.Addr) bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for key, f := range fs.live {
		if !may(key.outside.Addr()) {
			f.cancel()
			delete(fs.live, key)
		}
	}
}

// evict ends the flow that was idle longest, if there is one. The caller holds the lock.
func (fs *flows) evict() {
	var oldest *flow
	for _, f := range fs.live {
		if oldest == nil || f.used.Load() < oldest.used.Load() {
			oldest = f
		}
	}
	if oldest == nil {
		return
	}
	oldest.cancel()
	delete(fs.live, oldest.key)
}

func (fs *flows) remove(f *flow) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.live[f.key] == f {
		delete(fs.live, f.key)
	}
}

// run sets the flow up and carries its datagrams both ways until it is idle, broken or cancelled.
func (fs *flows) run(ctx context.Context, f *flow) {
	c, err := dialer().DialContext(ctx, "udp", f.key.outside.String())
	if err != nil {
		return
	}
	outside := c.(*net.UDPConn)
	defer outside.Close()
	box, err := fs.sockets.open(f.key.outside, f.key.box)
	if err != nil {
		return
	}
	defer box.Close()
	stop := context.AfterFunc(ctx, func() { _ = box.Close(); _ = outside.Close() })
	defer stop()
	f.ready(outside)
	var up sync.WaitGroup
	up.Go(func() {
		defer f.cancel() // one direction's end is the flow's end
		fs.egress.carryDatagrams(outside, box, f)
	})
	fs.egress.carryDatagrams(box, outside, f)
	f.cancel()
	up.Wait()
}

// send passes a datagram from the shared socket on, or keeps it until the flow is set up.
func (f *flow) send(b []byte) {
	f.touch()
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.outside != nil:
		_, _ = f.outside.Write(b)
	case len(f.waiting) < maxWaiting:
		f.waiting = append(f.waiting, append([]byte(nil), b...))
	}
}

// ready passes on what waited.
func (f *flow) ready(outside *net.UDPConn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.waiting {
		_, _ = outside.Write(b)
	}
	f.outside, f.waiting = outside, nil
}

func (f *flow) touch() { f.used.Store(time.Now().UnixNano()) }

// rest is how long the flow may stay idle from now on.
func (f *flow) rest() time.Duration {
	return f.idle - time.Duration(time.Now().UnixNano()-f.used.Load())
}

// carryDatagrams copies one direction until the flow was idle for its time or a socket breaks.
func (e *Egress) carryDatagrams(to, from *net.UDPConn, f *flow) {
	raw, err := from.SyscallConn()
	if err != nil {
		return
	}
	for rest := f.rest(); rest > 0; rest = f.rest() {
		if from.SetReadDeadline(time.Now().Add(rest)) != nil {
			return
		}
		var failed error
		err := raw.Read(func(fd uintptr) (done bool) {
			done, failed = e.carryOne(to, int(fd), f)
			return done
		})
		if failed != nil || (err != nil && !errors.Is(err, os.ErrDeadlineExceeded)) {
			return
		}
	}
}

// carryOne copies one datagram, or says that none is there yet. It holds a buffer only meanwhile.
func (e *Egress) carryOne(to *net.UDPConn, fd int, f *flow) (done bool, err error) {
	b := e.buffers.Get().(*[maxDatagram]byte)
	defer e.buffers.Put(b)
	n, err := unix.Read(fd, b[:])
	switch {
	case errors.Is(err, unix.EAGAIN):
		return false, nil
	case errors.Is(err, unix.EINTR):
		return true, nil
	case err != nil:
		return true, err
	}
	f.touch()
	_, err = to.Write(b[:n])
	if errors.Is(err, net.ErrClosed) {
		return true, err
	}
	return true, nil // a datagram that cannot be sent is a datagram lost
}

// originalDestination finds the address that the program sent to among the control messages.
func originalDestination(oob []byte) (netip.AddrPort, bool) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return netip.AddrPort{}, false
	}
	for _, m := range messages {
		d := m.Data
		switch {
		case m.Header.Level == unix.SOL_IP && m.Header.Type == unix.IP_ORIGDSTADDR && len(d) >= unix.SizeofSockaddrInet4:
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte(d[4:8])), binary.BigEndian.Uint16(d[2:])), true
		case m.Header.Level == unix.SOL_IPV6 && m.Header.Type == unix.IPV6_ORIGDSTADDR && len(d) >= unix.SizeofSockaddrInet6:
			return netip.AddrPortFrom(netip.AddrFrom16([16]byte(d[8:24])), binary.BigEndian.Uint16(d[2:])), true
		}
	}
	return netip.AddrPort{}, false
}
