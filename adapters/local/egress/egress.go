// Package egress gives boxes the internet, by policy. PID 1 of a box makes transparent sockets in the box's
// own network namespace (package inside) and passes them to the facade; the facade accepts on them what
// programs in the box send to any address, decides by that address, connects from the host, and carries the
// bytes. Nothing on the host is configured, and nothing of the box is trusted: whatever it passes, only
// what the policy allows is connected.
//
// To know: a connect inside succeeds before the facade has connected outside, so a refused or closed port
// shows as a reset after the connect. A box without the internet has no sockets at all (inside.Loopback).
// The addresses of the box itself, 10.0.2.3 and 10.0.2.100, cannot be reached outside.
package egress

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Limits of one box, so that none can use up what all share. A Budget lowers them when many boxes use theirs.
const (
	maxConnections = 1024             // TCP connections, DNS over TCP included
	maxFlows       = 256              // UDP flows; the one that was idle longest makes room
	maxQueries     = 64               // DNS queries on the way
	dialTimeout    = 10 * time.Second // for one connect outside
	idleFlow       = time.Minute      // a UDP flow without a datagram ends
	idleQuery      = 10 * time.Second // the same for port 53, where each query is a flow
)

// Egress carries the traffic of one box. Make it with Open.
type Egress struct {
	policy  atomic.Pointer[Policy]
	names   *names
	open    *passages
	flows   *flows
	sockets *sockets
	share   *share
	// buffers holds datagram buffers (*[maxDatagram]byte): only a flow that has a datagram in hand uses one.
	buffers sync.Pool
}

// Open takes the descriptors of a box, in the order of package inside, and writes the box's rules: when it
// returns, what the box sends waits to be served. The box keeps its own descriptors, so that the next facade
// goes on with what waited meanwhile. Open owns files, also when it fails: because the policy is not valid,
// or because the box's sockets are not what they should be. The budget is that of all boxes.
func Open(files []*os.File, p Policy, budget *Budget) (*Egress, error) {
	s, err := open(files)
	if err != nil {
		return nil, fmt.Errorf("the box's egress sockets: %w", err)
	}
	e := &Egress{
		sockets: s, share: &share{budget: budget}, buffers: sync.Pool{New: func() any { return new([maxDatagram]byte) }},
		names: &names{learned: map[netip.Addr]learned{}}, open: &passages{live: map[*passage]struct{}{}},
	}
	e.flows = &flows{egress: e, sockets: s.flows, live: map[flowKey]*flow{}}
	if err := e.SetPolicy(p); err != nil {
		s.close()
		return nil, err
	}
	if err := install(s.netlink, s.tcp6 != nil); err != nil {
		s.close()
		return nil, fmt.Errorf("the box's egress rules: %w", err)
	}
	return e, nil
}

// SetPolicy changes the policy, at once: what is open and would not be allowed any more is cut.
func (e *Egress) SetPolicy(p Policy) error {
	if err := p.Validate(); err != nil {
		return err
	}
	e.policy.Store(&p)
	e.open.cut(func(one *passage) bool { return e.mayPass(one) })
	e.flows.cut(func(to netip.Addr) bool { return p.decide(to) == allowed })
	return nil
}

// Close gives the box's sockets back, for an Egress that is not going to be served.
func (e *Egress) Close() { e.sockets.close() }

// Serve carries the box's traffic until ctx ends, once. It returns nil when ctx ended, and an error when the
// box's sockets do not work; everything it started has ended then, and the sockets are closed. The caller
// ends ctx when the box ends: an open descriptor keeps the box's network namespace.
func (e *Egress) Serve(ctx context.Context) error {
	s := e.sockets
	defer s.close()
	group, run := errgroup.WithContext(ctx)
	stop := context.AfterFunc(run, s.close)
	defer stop()
	conns := &connections{slots: make(chan struct{}, maxConnections), share: e.share}
	flows := e.flows
	group.Go(func() error { return conns.accept(run, s.tcp, e.pass) })
	group.Go(func() error { return conns.accept(run, s.dnsTCP, e.answerTCP) })
	group.Go(func() error { return flows.read(run, s.udp) })
	group.Go(func() error { return e.answer(run, s.dnsUDP) })
	if s.tcp6 != nil {
		group.Go(func() error { return conns.accept(run, s.tcp6, e.pass) })
		group.Go(func() error { return flows.read(run, s.udp6) })
	}
	err := group.Wait()
	conns.wait.Wait()
	flows.wait.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// dialer connects from the host. Keep-alive is Go's default, so that a dead peer does not hold a slot.
func dialer() *net.Dialer { return &net.Dialer{Timeout: dialTimeout} }
