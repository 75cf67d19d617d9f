package process

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	wire "github.com/isthmus/isthmus/envd/process"
)

const (
	// maxOutput and maxTerminal bound one message's bytes.
	maxOutput   = 64 << 10
	maxTerminal = 16 << 10
	// maxRest bounds what is still taken after the process was signalled and has died, in bytes: all that a
	// pipe can hold. Descendants may go on writing for ever.
	maxRest = 1 << 20
)

// output is one stream of a process's output.
type output struct {
	file *os.File
	size int
	// event wraps bytes, which it keeps.
	event func([]byte) *wire.ProcessEvent
}

func stdoutEvent(b []byte) *wire.ProcessEvent {
	return dataEvent(&wire.ProcessEvent_DataEvent{Output: &wire.ProcessEvent_DataEvent_Stdout{Stdout: b}})
}

func stderrEvent(b []byte) *wire.ProcessEvent {
	return dataEvent(&wire.ProcessEvent_DataEvent{Output: &wire.ProcessEvent_DataEvent_Stderr{Stderr: b}})
}

func terminalEvent(b []byte) *wire.ProcessEvent {
	return dataEvent(&wire.ProcessEvent_DataEvent{Output: &wire.ProcessEvent_DataEvent_Pty{Pty: b}})
}

func dataEvent(data *wire.ProcessEvent_DataEvent) *wire.ProcessEvent {
	return &wire.ProcessEvent{Event: &wire.ProcessEvent_Data{Data: data}}
}

// pump reads the streams, of which there is one at least, until each has ended, and publishes what it reads.
func (s *Service) pump(outputs []output, to *fanout) (drained <-chan struct{}) {
	done := make(chan struct{})
	left := new(atomic.Int32)
	left.Store(int32(len(outputs)))
	for _, o := range outputs {
		s.work.Go(func() {
			s.pumpOne(o, to)
			if left.Add(-1) == 0 {
				close(done)
			}
		})
	}
	return done
}

func (s *Service) pumpOne(o output, to *fanout) {
	var err error
	for err == nil {
		err = s.pumpOnce(o, to, true)
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return
	}
	// Interrupted: take what is there already, without waiting for more.
	_ = o.file.SetReadDeadline(time.Time{})
	err = nil
	for rest := 0; rest < maxRest && err == nil; rest += o.size {
		err = s.pumpOnce(o, to, false)
	}
}

// interrupt stops the waiting for more output.
func (o output) interrupt() { _ = o.file.SetReadDeadline(time.Unix(1, 0)) }

// errEnded is the end of a stream.
var errEnded = errors.New("end of output")

// pumpOnce reads and publishes one message. It holds no buffer while it waits, so that an idle process costs
// next to nothing.
func (s *Service) pumpOnce(o output, to *fanout, wait bool) error {
	conn, err := o.file.SyscallConn()
	if err != nil {
		return err
	}
	var read *chunk
	var failed error
	err = conn.Read(func(fd uintptr) bool {
		read, failed = s.read(int(fd), o.size)
		return !wait || failed != syscall.EAGAIN
	})
	if err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	to.publish(func() message { return message{event: o.event(read.bytes[:read.size]), chunk: read} })
	read.release()
	return nil
}

// read takes what is there, at most size bytes. A terminal without a far end answers EIO.
func (s *Service) read(fd, size int) (*chunk, error) {
	c := s.chunks.take()
	n, err := syscall.Read(fd, c.bytes[:size])
	for err == syscall.EINTR {
		n, err = syscall.Read(fd, c.bytes[:size])
	}
	if err == nil && n == 0 {
		err = errEnded
	}
	if err != nil {
		c.release()
		return nil, err
	}
	c.size = n
	return c, nil
}
