package egress

import (
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/isthmus/isthmus/adapters/local/egress/inside"
)

// sockets are a box's sockets as the facade uses them.
type sockets struct {
	tcp, dnsTCP, tcp6 *net.TCPListener
	udp, dnsUDP, udp6 *net.UDPConn
	netlink           *os.File
	flows             *flowSockets
	once              sync.Once
}

// open checks that the descriptors are what they should be: the box is not trusted. It closes them all.
func open(files []*os.File) (*sockets, error) {
	defer func() {
		for i, f := range files {
			if i != inside.Netlink {
				_ = f.Close()
			}
		}
	}()
	if len(files) < inside.Least || len(files) > inside.Most || len(files) == inside.UDP6 {
		if len(files) > inside.Netlink {
			_ = files[inside.Netlink].Close()
		}
		return nil, fmt.Errorf("%d descriptors came, not %d or %d", len(files), inside.Least, inside.Most)
	}
	s := &sockets{netlink: files[inside.Netlink]}
	if err := s.adopt(files); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *sockets) adopt(files []*os.File) (err error) {
	if s.tcp, err = listener(files[inside.TCP]); err != nil {
		return err
	}
	if s.dnsTCP, err = listener(files[inside.DNSTCP]); err != nil {
		return err
	}
	if s.udp, err = datagrams(files[inside.UDP]); err != nil {
		return err
	}
	if s.dnsUDP, err = datagrams(files[inside.DNSUDP]); err != nil {
		return err
	}
	if s.flows, err = openFlowSockets(files[inside.Responder]); err != nil {
		return err
	}
	if len(files) < inside.Most {
		return nil
	}
	if s.tcp6, err = listener(files[inside.TCP6]); err != nil {
		return err
	}
	s.udp6, err = datagrams(files[inside.UDP6])
	return err
}

func (s *sockets) close() {
	s.once.Do(func() {
		for _, l := range []*net.TCPListener{s.tcp, s.dnsTCP, s.tcp6} {
			if l != nil {
				_ = l.Close()
			}
		}
		for _, c := range []*net.UDPConn{s.udp, s.dnsUDP, s.udp6} {
			if c != nil {
				_ = c.Close()
			}
		}
		if s.flows != nil {
			s.flows.close()
		}
		_ = s.netlink.Close()
	})
}

// listener returns the TCP listener behind f, which stays open.
func listener(f *os.File) (*net.TCPListener, error) {
	l, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	t, ok := l.(*net.TCPListener)
	if !ok {
		_ = l.Close()
		return nil, fmt.Errorf("%T where a TCP listener should be", l)
	}
	return t, nil
}

// datagrams returns the UDP socket behind f, which stays open.
func datagrams(f *os.File) (*net.UDPConn, error) {
	c, err := net.FilePacketConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UDPConn)
	if !ok {
		_ = c.Close()
		return nil, fmt.Errorf("%T where a UDP socket should be", c)
	}
	return u, nil
}
