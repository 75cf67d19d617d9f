package egress

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	headerSize = 12
	// queryTime bounds the wait for one resolver's answer.
	queryTime = 2 * time.Second
	// The host's list of resolvers, and the one behind systemd's stub: the stub also answers from the
	// host's /etc/hosts, which is nothing for a box to see.
	resolverFile   = "/etc/resolv.conf"
	behindStubFile = "/run/systemd/resolve/resolv.conf"
	stub           = "127.0.0.53"
)

// answer forwards the box's name look-ups to the resolvers until ctx ends.
func (e *Egress) answer(ctx context.Context, c *net.UDPConn) error {
	slots := make(chan struct{}, maxQueries)
	var wait sync.WaitGroup
	defer wait.Wait()
	for {
		query, from, err := e.question(c)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil || len(query) < headerSize:
			continue
		}
		select {
		case slots <- struct{}{}:
		default:
			continue // too many at once: the program asks again
		}
		if !e.share.take() {
			<-slots
			continue
		}
		wait.Go(func() {
			defer func() { e.share.give(); <-slots }()
			_, _ = c.WriteToUDPAddrPort(e.resolve(ctx, query), from)
		})
	}
}

// question reads one query.
func (e *Egress) question(c *net.UDPConn) ([]byte, netip.AddrPort, error) {
	if err := readable(c); err != nil {
		return nil, netip.AddrPort{}, err
	}
	b := e.buffers.Get().(*[maxDatagram]byte)
	defer e.buffers.Put(b)
	n, from, err := c.ReadFromUDPAddrPort(b[:])
	return append([]byte(nil), b[:n]...), from, err
}

// resolve returns the resolvers' answer to the query, or a refusal or failure in the words of DNS.
func (e *Egress) resolve(ctx context.Context, query []byte) []byte {
	return e.lookUp(ctx, query, ask, askTCP)
}

// lookUp answers a query by the first resolver that answers in one of the ways, tried in order, and learns the
// addresses of an allowed name.
func (e *Egress) lookUp(ctx context.Context, query []byte, ways ...func(context.Context, netip.AddrPort, []byte) ([]byte, error)) []byte {
	p, name := e.policy.Load(), asked(query)
	if !p.resolves(name) {
		return failure(query, dnsmessage.RCodeRefused)
	}
	resolvers := p.resolvers()
	for _, way := range ways {
		for _, r := range resolvers {
			answer, err := way(ctx, r, query)
			if err != nil {
				continue
			}
			if p.allowsName(name) {
				e.names.learn(name, answer)
			}
			return answer
		}
	}
	return failure(query, dnsmessage.RCodeServerFailure)
}

// ask sends the query over UDP. A truncated answer goes back as it is: the program then asks over TCP.
func ask(ctx context.Context, resolver netip.AddrPort, query []byte) ([]byte, error) {
	c, err := dialer().DialContext(ctx, "udp", resolver.String())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	if err := c.SetDeadline(time.Now().Add(queryTime)); err != nil {
		return nil, err
	}
	if _, err := c.Write(query); err != nil {
		return nil, err
	}
	b := make([]byte, maxDatagram)
	for {
		n, err := c.Read(b)
		if err != nil {
			return nil, err
		}
		if n >= headerSize && b[0] == query[0] && b[1] == query[1] {
			return b[:n], nil
		}
	}
}

// askTCP sends the query over TCP, for resolvers that do not answer over UDP.
func askTCP(ctx context.Context, resolver netip.AddrPort, query []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTime)
	defer cancel()
	c, err := dialTCP(ctx, resolver)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	if _, err := c.Write(framed(query)); err != nil {
		return nil, err
	}
	return readMessage(c)
}

// idleResolver bounds how long a connection for look-ups waits for the next one.
const idleResolver = 10 * time.Second

// answerTCP answers the look-ups of a program that makes them over TCP, one after the other: each is held against the
// policy, as those over UDP are.
func (e *Egress) answerTCP(ctx context.Context, c *net.TCPConn) {
	defer c.Close()
	defer context.AfterFunc(ctx, func() { reset(c) })()
	for {
		if c.SetDeadline(time.Now().Add(idleResolver)) != nil {
			return
		}
		query, err := readMessage(c)
		if err != nil {
			return
		}
		if _, err := c.Write(framed(e.lookUp(ctx, query, askTCP, ask))); err != nil {
			return
		}
	}
}

// readMessage reads one message of DNS over TCP.
func readMessage(from io.Reader) ([]byte, error) {
	size := make([]byte, 2)
	if _, err := io.ReadFull(from, size); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint16(size))
	if _, err := io.ReadFull(from, b); err != nil {
		return nil, err
	}
	if len(b) < headerSize {
		return nil, io.ErrUnexpectedEOF
	}
	return b, nil
}

// framed is a message as it goes over TCP.
func framed(message []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...)
}

// failure is an answer that says only why there is none.
func failure(query []byte, code dnsmessage.RCode) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil {
		return nil
	}
	m := dnsmessage.Message{Header: dnsmessage.Header{
		ID: h.ID, Response: true, OpCode: h.OpCode, RecursionDesired: h.RecursionDesired, RecursionAvailable: true, RCode: code,
	}}
	if q, err := p.Question(); err == nil {
		m.Questions = []dnsmessage.Question{q}
	}
	b, err := m.Pack()
	if err != nil {
		return nil
	}
	return b
}

// resolvers are the policy's own, or the host's as they are now.
func (p Policy) resolvers() []netip.AddrPort {
	if len(p.Resolvers) > 0 {
		return p.Resolvers
	}
	found := nameservers(resolverFile)
	if len(found) == 1 && found[0].Addr() == netip.MustParseAddr(stub) {
		if behind := nameservers(behindStubFile); len(behind) > 0 {
			return behind
		}
	}
	return found
}

// nameservers reads a resolv.conf; one that cannot be read has none.
func nameservers(file string) []netip.AddrPort {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	var found []netip.AddrPort
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "nameserver" {
			continue
		}
		if a, err := netip.ParseAddr(f[1]); err == nil {
			found = append(found, netip.AddrPortFrom(a, 53))
		}
	}
	return found
}
