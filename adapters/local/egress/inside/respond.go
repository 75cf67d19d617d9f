package inside

import (
	"encoding/binary"
	"errors"
	"io"
	"net/netip"

	"golang.org/x/sys/unix"
)

// A UDP flow needs a socket that has the outside address as its own, and only a process of the box may make
// one. So the facade asks PID 1: one packet with the two addresses, answered by one packet with an error
// number and, when that is 0, the descriptor.
const (
	requestSize = 4 + 2*addressSize
	// AnswerSize is the size of an answer: the request's number and an errno, each a 32-bit little-endian.
	AnswerSize  = 8
	addressSize = 18
)

// Request encodes the wish for a UDP socket that is bound to local, an address outside, and connected to
// remote, the program in the box. The number comes back in the answer.
func Request(number uint32, local, remote netip.AddrPort) []byte {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, requestSize), number)
	for _, a := range []netip.AddrPort{local, remote} {
		ip := a.Addr().As16()
		b = append(b, ip[:]...)
		b = binary.LittleEndian.AppendUint16(b, a.Port())
	}
	return b
}

// Respond answers the facade's requests until Close. It is called once; it needs CAP_NET_ADMIN and, for
// ports below 1024, CAP_NET_BIND_SERVICE in the box.
func (s *Sockets) Respond() error {
	defer unix.Close(s.answer)
	b := make([]byte, requestSize+1)
	for {
		n, err := unix.Read(s.answer, b)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case n == 0:
			return nil // closed
		case n != requestSize:
			continue // not one of ours
		}
		if err := s.reply(b[:n]); err != nil && !errors.Is(err, io.ErrShortWrite) {
			return err
		}
	}
}

func (s *Sockets) reply(request []byte) error {
	fd, err := flow(address(request[4:]), address(request[4+addressSize:]))
	answer := make([]byte, AnswerSize)
	copy(answer, request[:4])
	if err != nil {
		errno := unix.EIO
		_ = errors.As(err, &errno)
		binary.LittleEndian.PutUint32(answer[4:], uint32(errno))
		return unix.Sendmsg(s.answer, answer, nil, nil, unix.MSG_NOSIGNAL)
	}
	defer unix.Close(fd)
	return unix.Sendmsg(s.answer, answer, unix.UnixRights(fd), nil, unix.MSG_NOSIGNAL)
}

// flow makes the socket of one flow.
func flow(local, remote netip.AddrPort) (int, error) {
	if local.Addr().Is4() != remote.Addr().Is4() {
		return -1, unix.EAFNOSUPPORT
	}
	fd, err := transparent(unix.SOCK_DGRAM, local.Addr().Is6())
	if err != nil {
		return -1, err
	}
	if err = unix.Bind(fd, sockaddr(local)); err == nil {
		err = unix.Connect(fd, sockaddr(remote))
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// address decodes one address; IPv4 travels in its IPv6-mapped form.
func address(b []byte) netip.AddrPort {
	ip := netip.AddrFrom16([16]byte(b[:16])).Unmap()
	return netip.AddrPortFrom(ip, binary.LittleEndian.Uint16(b[16:]))
}
