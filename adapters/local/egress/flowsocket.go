package egress

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters/local/egress/inside"
)

// flowSockets asks PID 1 for the sockets of UDP flows.
type flowSockets struct {
	conn   *net.UnixConn
	mu     sync.Mutex
	number uint32
}

func openFlowSockets(f *os.File) (*flowSockets, error) {
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		_ = c.Close()
		return nil, fmt.Errorf("%T where a unix socket should be", c)
	}
	return &flowSockets{conn: u, number: uint32(time.Now().UnixNano())}, nil
}

func (s *flowSockets) close() { _ = s.conn.Close() }

// open returns a UDP socket in the box that is bound to local, an address outside, and connected to remote.
func (s *flowSockets) open(local, remote netip.AddrPort) (*net.UDPConn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number++
	if err := s.conn.SetDeadline(time.Now().Add(answerTime)); err != nil {
		return nil, err
	}
	if _, err := s.conn.Write(inside.Request(s.number, local, remote)); err != nil {
		return nil, err
	}
	for {
		number, f, err := s.receive()
		if number != s.number && err == nil { // an answer that an earlier facade did not take
			if f != nil {
				_ = f.Close()
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		if f == nil {
			return nil, unix.EBADMSG
		}
		defer f.Close()
		return datagrams(f)
	}
}

// receive takes one answer. A refusal is an error only when it answers the current request.
func (s *flowSockets) receive() (uint32, *os.File, error) {
	b := make([]byte, inside.AnswerSize)
	oob := make([]byte, unix.CmsgSpace(4*4))
	n, oobn, _, _, err := s.conn.ReadMsgUnix(b, oob)
	if err != nil {
		return 0, nil, err
	}
	f := passed(oob[:oobn])
	if n != inside.AnswerSize {
		if f != nil {
			_ = f.Close()
		}
		return 0, nil, unix.EBADMSG
	}
	number, code := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	if code != 0 && number == s.number {
		if f != nil {
			_ = f.Close()
		}
		return number, nil, unix.Errno(code)
	}
	return number, f, nil
}

// passed returns the descriptor in a control message; should the box send several, the others are closed.
func passed(oob []byte) *os.File {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	var first *os.File
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue
		}
		for _, fd := range fds {
			if first == nil {
				first = os.NewFile(uintptr(fd), "flow")
				continue
			}
			_ = unix.Close(fd)
		}
	}
	return first
}
