package inside

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// backlog is how many connections wait while the facade restarts.
const backlog = 4096

// bound makes a transparent socket of the type and binds it; a stream socket listens.
func bound(typ int, at netip.AddrPort) (int, error) {
	fd, err := transparent(typ, at.Addr().Is6())
	if err != nil {
		return -1, err
	}
	if err := bind(fd, typ, at); err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("listening on %v: %w", at, err)
	}
	return fd, nil
}

func bind(fd, typ int, at netip.AddrPort) error {
	if err := unix.Bind(fd, sockaddr(at)); err != nil {
		return err
	}
	if typ == unix.SOCK_STREAM {
		return unix.Listen(fd, backlog)
	}
	if at.Addr().Is6() {
		return unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_RECVORIGDSTADDR, 1)
	}
	return unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_RECVORIGDSTADDR, 1)
}

// transparent makes a socket that may have any address as its own.
func transparent(typ int, v6 bool) (int, error) {
	family, level, option := unix.AF_INET, unix.SOL_IP, unix.IP_TRANSPARENT
	if v6 {
		family, level, option = unix.AF_INET6, unix.SOL_IPV6, unix.IPV6_TRANSPARENT
	}
	fd, err := unix.Socket(family, typ|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err == nil {
		err = unix.SetsockoptInt(fd, level, option, 1)
	}
	if err == nil && v6 {
		err = unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_V6ONLY, 1)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("transparent socket: %w", err)
	}
	return fd, nil
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is6() {
		return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
	}
	return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
}
