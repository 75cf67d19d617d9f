package inside

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"

	"golang.org/x/sys/unix"
)

// loopback is the index of lo in every network namespace.
const loopback = 1

// configure brings lo up, gives it the box's addresses and makes every other address local too.
func configure(v6 bool) error {
	r, err := openRoutes()
	if err != nil {
		return err
	}
	defer r.close()
	if err := r.up(); err != nil {
		return err
	}
	for _, a := range []netip.Addr{Self, Resolver} {
		if err := r.address(a); err != nil {
			return err
		}
	}
	if err := r.everywhere(Self); err != nil {
		return err
	}
	if !v6 {
		return nil
	}
	if err := r.address(Self6); err != nil {
		return err
	}
	return r.everywhere(Self6)
}

// routes is a NETLINK_ROUTE socket.
type routes struct{ fd int }

func openRoutes() (*routes, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("routing socket: %w", err)
	}
	return &routes{fd: fd}, nil
}

func (r *routes) close() { _ = unix.Close(r.fd) }

// up brings lo up.
func (r *routes) up() error {
	b := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(b[4:], loopback)
	binary.NativeEndian.PutUint32(b[8:], unix.IFF_UP)
	binary.NativeEndian.PutUint32(b[12:], unix.IFF_UP)
	if err := r.do(unix.RTM_NEWLINK, 0, b); err != nil {
		return fmt.Errorf("bringing lo up: %w", err)
	}
	return nil
}

// address gives lo one more address. An address that is there already is fine.
func (r *routes) address(a netip.Addr) error {
	b := []byte{family(a), byte(a.BitLen()), unix.IFA_F_NODAD, 0}
	b = binary.NativeEndian.AppendUint32(b, loopback)
	b = attribute(b, unix.IFA_LOCAL, a.AsSlice())
	b = attribute(b, unix.IFA_ADDRESS, a.AsSlice())
	if err := r.do(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, b); err != nil {
		return fmt.Errorf("address %v: %w", a, err)
	}
	return nil
}

// everywhere makes every address of the family local, with source as the address that programs send from.
func (r *routes) everywhere(source netip.Addr) error {
	b := []byte{family(source), 0, 0, 0, unix.RT_TABLE_MAIN, unix.RTPROT_BOOT, unix.RT_SCOPE_HOST, unix.RTN_LOCAL, 0, 0, 0, 0}
	b = attribute(b, unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, loopback))
	b = attribute(b, unix.RTA_PREFSRC, source.AsSlice())
	if err := r.do(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, b); err != nil {
		return fmt.Errorf("default route of %v: %w", source, err)
	}
	return nil
}

// do sends one request and waits for the kernel's answer to it.
func (r *routes) do(typ, flags uint16, body []byte) error {
	b := make([]byte, 0, unix.NLMSG_HDRLEN+len(body))
	b = binary.NativeEndian.AppendUint32(b, uint32(cap(b)))
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = binary.NativeEndian.AppendUint16(b, flags|unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	b = append(b, make([]byte, 8)...)
	b = append(b, body...)
	if err := unix.Sendto(r.fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(r.fd, answer, 0)
	if err != nil {
		return err
	}
	if n < unix.NLMSG_HDRLEN+4 || binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return io.ErrUnexpectedEOF
	}
	if e := int32(binary.NativeEndian.Uint32(answer[unix.NLMSG_HDRLEN:])); e != 0 {
		return unix.Errno(-e)
	}
	return nil
}

// attribute appends one routing attribute, padded to four bytes.
func attribute(b []byte, typ uint16, value []byte) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(unix.SizeofRtAttr+len(value)))
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = append(b, value...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func family(a netip.Addr) byte {
	if a.Is6() {
		return unix.AF_INET6
	}
	return unix.AF_INET
}
