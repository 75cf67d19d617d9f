package egress

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// reachable returns nil when the host's routes lead to the address outside the host. The kernel knows all of
// its own addresses, at once when they change, routes that make whole ranges local included: so it is asked
// at each connect, which takes some microseconds.
func reachable(a netip.Addr) error {
	typ, err := routeType(a)
	switch {
	case err != nil:
		return fmt.Errorf("no route to %v: %w", a, err)
	case typ != unix.RTN_UNICAST:
		return errRefused
	}
	return nil
}

// routeType asks the kernel which kind of route leads to the address.
func routeType(a netip.Addr) (byte, error) {
	family := byte(unix.AF_INET)
	if a.Is6() {
		family = unix.AF_INET6
	}
	body := make([]byte, unix.SizeofRtMsg)
	body[0], body[1] = family, byte(a.BitLen())
	attrs, err := netlink.MarshalAttributes([]netlink.Attribute{{Type: unix.RTA_DST, Data: a.AsSlice()}})
	if err != nil {
		return 0, err
	}
	body = append(body, attrs...)
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	request := message(unix.RTM_GETROUTE, unix.NLM_F_REQUEST, 1, body)
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return 0, err
	}
	return parseRoute(answer[:n])
}

func parseRoute(b []byte) (byte, error) {
	if len(b) < unix.NLMSG_HDRLEN+unix.SizeofRtMsg {
		return 0, unix.EBADMSG
	}
	switch body := b[unix.NLMSG_HDRLEN:]; binary.NativeEndian.Uint16(b[4:]) {
	case unix.NLMSG_ERROR:
		return 0, unix.Errno(-int32(binary.NativeEndian.Uint32(body)))
	case unix.RTM_NEWROUTE:
		return body[7], nil // struct rtmsg: rtm_type
	}
	return 0, unix.EBADMSG
}

// message frames one netlink message.
func message(typ, flags uint16, seq uint32, body []byte) []byte {
	b := make([]byte, 0, unix.NLMSG_HDRLEN+len(body)+3)
	b = binary.NativeEndian.AppendUint32(b, uint32(unix.NLMSG_HDRLEN+len(body)))
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = binary.NativeEndian.AppendUint16(b, flags)
	b = binary.NativeEndian.AppendUint32(b, seq)
	b = binary.NativeEndian.AppendUint32(b, 0)
	b = append(b, body...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}
