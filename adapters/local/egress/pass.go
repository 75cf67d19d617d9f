package egress

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// helloTime bounds the wait for the first words of a connection to an address that nobody has looked up here.
const helloTime = 5 * time.Second

// passage is one connection that is being carried.
type passage struct {
	to     netip.AddrPort
	cancel context.CancelFunc

	mu   sync.Mutex
	name string // by which it passes; empty: by its address
}

func (p *passage) named() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.name
}

func (p *passage) call(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.name = name
}

// passages are those of one box.
type passages struct {
	mu   sync.Mutex
	live map[*passage]struct{}
}

func (ps *passages) add(p *passage) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.live[p] = struct{}{}
}

func (ps *passages) remove(p *passage) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	delete(ps.live, p)
}

// cut ends those that may not pass any more.
func (ps *passages) cut(may func(*passage) bool) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for p := range ps.live {
		if !may(p) {
			p.cancel()
		}
	}
}

// mayPass holds a connection against the policy as it is now.
func (e *Egress) mayPass(p *passage) bool {
	policy := e.policy.Load()
	switch policy.decide(p.to.Addr()) {
	case allowed:
		return true
	case byName:
		return policy.allowsName(p.named())
	}
	return false
}

// pass carries one connection of a program in the box, when the policy allows where it goes.
func (e *Egress) pass(ctx context.Context, box *net.TCPConn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &passage{to: box.LocalAddr().(*net.TCPAddr).AddrPort(), cancel: cancel}
	said, ok := e.admit(ctx, p, box)
	if !ok {
		reset(box)
		return
	}
	e.open.add(p)
	defer e.open.remove(p)
	if !e.mayPass(p) { // the policy was changed meanwhile
		reset(box)
		return
	}
	said, taken := e.intercept(ctx, p, box, said)
	if taken {
		return
	}
	outside, err := dialTCP(ctx, p.to)
	if err != nil {
		reset(box)
		return
	}
	e.relay(ctx, p, box, outside, said)
}

// admit decides whether a connection may be made. Where only a name allows the address, and the box has not looked it
// up here, as after a restart of the facade, the program must name it first: said is what it said.
func (e *Egress) admit(ctx context.Context, p *passage, box *net.TCPConn) (said []byte, ok bool) {
	policy, a := e.policy.Load(), p.to.Addr()
	verdict := policy.decide(a)
	if verdict == refused || p.to.Port() == 0 || reachable(a) != nil {
		return nil, false
	}
	if verdict == allowed {
		return nil, true
	}
	if name := e.names.of(a); policy.allowsName(name) {
		p.call(name)
		return nil, true
	}
	stop := context.AfterFunc(ctx, func() { reset(box) })
	defer stop()
	if box.SetReadDeadline(time.Now().Add(helloTime)) != nil {
		return nil, false
	}
	h := listenTo(box)
	if !policy.allowsName(h.name) || !e.has(ctx, h.name, a) || box.SetReadDeadline(time.Time{}) != nil {
		return nil, false
	}
	p.call(h.name)
	return h.said, true
}

// has reports whether the name has the address, as the resolvers say now.
func (e *Egress) has(ctx context.Context, name string, a netip.Addr) bool {
	q := query(name, a)
	if q == nil {
		return false
	}
	return slices.Contains(e.names.learn(name, e.resolve(ctx, q)), a)
}

// relay carries the bytes both ways until both sides have ended. said was read already.
func (e *Egress) relay(ctx context.Context, p *passage, box, outside *net.TCPConn, said []byte) {
	stop := context.AfterFunc(ctx, func() { reset(box); reset(outside) })
	defer stop()
	var up sync.WaitGroup
	up.Go(func() {
		if e.introduce(p, box, outside, said) {
			carry(outside, box)
		}
	})
	carry(box, outside)
	up.Wait()
	_ = box.Close()
	_ = outside.Close()
}

// hears holds a connection that passes by a name against the one that the program says, if it says one.
func (e *Egress) hears(p *passage, h hello) bool {
	if p.named() != "" && h.speaks {
		p.call(h.name)
	}
	return e.mayPass(p)
}

// introduce passes on how a program begins. Of a connection that passes by a name, the beginning is held back until it
// names the same host, or is of a protocol that names none: many hosts share one address.
func (e *Egress) introduce(p *passage, box, outside *net.TCPConn, said []byte) bool {
	if p.named() != "" && said == nil {
		h := listenTo(box)
		if !e.hears(p, h) {
			reset(box)
			reset(outside)
			return false
		}
		said = h.said
	}
	if _, err := outside.Write(said); err != nil {
		reset(box)
		reset(outside)
		return false
	}
	return true
}
