//go:build linux

// Package handover passes values and open descriptors between the facade and PID 1 of a box over a connected
// unix stream socket: at the create, and again when a restarted facade takes the box's traffic over.
package handover

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Limits of one message: the bytes of its JSON, and the number of descriptors.
const (
	MaxBytes = 8 << 20
	MaxFDs   = 32
)

// Pair returns two connected ends: one for this process, one to be inherited by a child.
func Pair() (ours *net.UnixConn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	theirs = os.NewFile(uintptr(fds[1]), "handover")
	ours, err = Conn(fds[0])
	if err != nil {
		_ = theirs.Close()
		return nil, nil, err
	}
	return ours, theirs, nil
}

// Conn makes a connection of a descriptor, which it takes over.
func Conn(fd int) (*net.UnixConn, error) {
	f := os.NewFile(uintptr(fd), "handover")
	defer func() { _ = f.Close() }()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		_ = c.Close()
		return nil, errors.New("handover: not a unix socket")
	}
	return u, nil
}

// Send writes v as JSON together with descriptors, which stay the caller's.
func Send(c *net.UnixConn, v any, fds ...int) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(body) > MaxBytes || len(fds) > MaxFDs {
		return fmt.Errorf("handover: message too large (%d bytes, %d descriptors)", len(body), len(fds))
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	if _, _, err := c.WriteMsgUnix(binary.BigEndian.AppendUint32(nil, uint32(len(body))), rights, nil); err != nil {
		return err
	}
	_, err = c.Write(body)
	return err
}

// Receive reads one message into v and returns its descriptors, which are the caller's to close; they are
// closed here when an error is returned. It returns io.EOF when the other side hung up before a message.
func Receive(c *net.UnixConn, v any) (fds []int, err error) {
	defer func() {
		if err != nil {
			CloseAll(fds)
			fds = nil
		}
	}()
	head := make([]byte, 4)
	rights := make([]byte, unix.CmsgSpace(4*MaxFDs))
	n, rn, _, _, err := c.ReadMsgUnix(head, rights)
	if err != nil {
		return nil, err
	}
	if fds, err = parse(rights[:rn]); err != nil {
		return fds, err
	}
	if n == 0 {
		return fds, io.EOF
	}
	if _, err := io.ReadFull(c, head[n:]); err != nil {
		return fds, err
	}
	size := binary.BigEndian.Uint32(head)
	if size > MaxBytes {
		return fds, fmt.Errorf("handover: message of %d bytes", size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(c, body); err != nil {
		return fds, err
	}
	return fds, json.Unmarshal(body, v)
}

// CloseAll closes descriptors.
func CloseAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

// parse takes the descriptors out of the control data and keeps them from children.
func parse(rights []byte) (fds []int, err error) {
	msgs, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	for i := range msgs {
		got, err := unix.ParseUnixRights(&msgs[i])
		if err != nil {
			return fds, err
		}
		for _, fd := range got {
			unix.CloseOnExec(fd)
		}
		fds = append(fds, got...)
	}
	return fds, nil
}
