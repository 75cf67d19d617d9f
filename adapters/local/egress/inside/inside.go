// Package inside is the half of the egress that runs in the box: PID 1 prepares the box's network namespace
// and makes the sockets that the facade then serves from outside. The namespace has nothing but lo; a local
// default route makes every address local, and the facade's rules lead what is sent to any of them to the
// sockets made here. It is linked into envd, so it imports x/sys and little else.
package inside

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"
)

// Port is where the transparent sockets listen. A program in the box cannot use this port.
const Port = 15001

// The box's own addresses. They exist in every box that has the internet and mean nothing outside it.
var (
	Self      = netip.AddrFrom4([4]byte{10, 0, 2, 100})
	Resolver  = netip.AddrFrom4([4]byte{10, 0, 2, 3})
	Self6     = netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x69, 2: 0x73, 3: 0x74, 15: 0x64})
	anywhere  = netip.IPv4Unspecified()
	anywhere6 = netip.IPv6Unspecified()
)

// The order of the descriptors that Descriptors returns and that the facade expects. The last two are there
// only when IPv6 was asked for and the kernel has it.
const (
	TCP       = iota // transparent TCP listener, any IPv4 address, Port
	UDP              // transparent UDP socket, any IPv4 address, Port, with the original destination
	Netlink          // NETLINK_NETFILTER: the facade writes the rules through it
	DNSTCP           // TCP listener on Resolver, port 53
	DNSUDP           // UDP socket on Resolver, port 53
	Responder        // the facade's end of the socket pair that Respond answers
	TCP6             // as TCP, for IPv6
	UDP6             // as UDP, for IPv6
)

// Least and Most are the smallest and the largest number of descriptors.
const (
	Least = TCP6
	Most  = UDP6 + 1
)

// Options say what the box's network has.
type Options struct {
	// IPv6 adds the IPv6 half. Ask for it only when the host itself has a default IPv6 route: a route that
	// leads nowhere slows every program that prefers IPv6.
	IPv6 bool
}

// Sockets are the sockets of one box. PID 1 keeps them for its whole life, so that a restarted facade finds
// them again with the connections that waited meanwhile.
type Sockets struct {
	fds      []int
	answer   int
	closeOne sync.Once
}

// Loopback brings lo up, and nothing else: all that a box without the internet has.
func Loopback() error {
	r, err := openRoutes()
	if err != nil {
		return err
	}
	defer r.close()
	return r.up()
}

// Later is a box's network that has loopback only and can get the internet. It holds the one socket that could not
// be made any more once the box's filter is loaded.
type Later struct{ netfilter int }

// Prepare brings lo up and makes that socket. The caller needs CAP_NET_ADMIN in the namespace, and calls it once. On a
// kernel without netfilter there is loopback, and Open fails.
func Prepare() (*Later, error) {
	if err := Loopback(); err != nil {
		return nil, fmt.Errorf("preparing the box's network: %w", err)
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return &Later{netfilter: -1}, nil //nolint:nilerr // Open says it, should it be asked for
	}
	return &Later{netfilter: fd}, nil
}

// Open prepares the calling process's network namespace and makes the sockets. The caller needs CAP_NET_ADMIN in the
// namespace, and calls it once.
func Open(o Options) (*Sockets, error) {
	l, err := Prepare()
	if err != nil {
		return nil, err
	}
	return l.Open(o)
}

// Open makes every address the box's own and opens the sockets. It is called once; when it fails it can be called
// again.
func (l *Later) Open(o Options) (*Sockets, error) {
	if l.netfilter < 0 {
		return nil, fmt.Errorf("netfilter socket: %w", unix.EPROTONOSUPPORT)
	}
	if err := configure(o.IPv6); err != nil {
		return nil, fmt.Errorf("preparing the box's network: %w", err)
	}
	netfilter, err := unix.FcntlInt(uintptr(l.netfilter), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("netfilter socket: %w", err)
	}
	s := &Sockets{answer: -1}
	if err := s.open(netfilter, o.IPv6); err != nil {
		s.Close()
		return nil, fmt.Errorf("making the box's sockets: %w", err)
	}
	return s, nil
}

// Descriptors returns the descriptors to pass to the facade, in the documented order. They stay open and
// owned by s: the facade gets duplicates.
func (s *Sockets) Descriptors() []int { return s.fds }

// Close closes everything and ends Respond.
func (s *Sockets) Close() {
	s.closeOne.Do(func() {
		if s.answer >= 0 {
			_ = unix.Shutdown(s.answer, unix.SHUT_RDWR)
		}
		for _, fd := range s.fds {
			_ = unix.Close(fd)
		}
	})
}

func (s *Sockets) open(netfilter int, v6 bool) error {
	add := func(fd int, err error) error {
		if err == nil {
			s.fds = append(s.fds, fd)
		}
		return err
	}
	if err := errors.Join(
		add(bound(unix.SOCK_STREAM, netip.AddrPortFrom(anywhere, Port))),
		add(bound(unix.SOCK_DGRAM, netip.AddrPortFrom(anywhere, Port))),
		add(netfilter, nil),
	); err != nil {
		return err
	}
	if err := add(bound(unix.SOCK_STREAM, netip.AddrPortFrom(Resolver, 53))); err != nil {
		return err
	}
	if err := add(bound(unix.SOCK_DGRAM, netip.AddrPortFrom(Resolver, 53))); err != nil {
		return err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket pair: %w", err)
	}
	s.fds, s.answer = append(s.fds, pair[0]), pair[1]
	if !v6 {
		return nil
	}
	if err := add(bound(unix.SOCK_STREAM, netip.AddrPortFrom(anywhere6, Port))); err != nil {
		return err
	}
	return add(bound(unix.SOCK_DGRAM, netip.AddrPortFrom(anywhere6, Port)))
}
