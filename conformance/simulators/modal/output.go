//go:build linux

package modal

import (
	"context"
	"errors"
	"io"
	"sync"
)

const (
	// ahead bounds what a program may have said that nobody has read, in bytes: then it waits. kept is how much of
	// what was read can be read once more.
	ahead = 4 << 20
	kept  = 4 << 20
)

var errForgotten = errors.New("that part of the output is not kept any more")

// output is what a program said on one stream, read by offset.
type output struct {
	mu      sync.Mutex
	changed chan struct{} // closed at every change
	start   uint64        // the offset of data
	data    []byte
	read    uint64 // up to where somebody has read
	ended   bool
	dropped bool // nobody wants more
}

func newOutput() *output { return &output{changed: make(chan struct{})} }

// fill takes what a program says until it says no more. Two may fill one output.
func (o *output) fill(from io.Reader) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		o.write(buffer[:n])
		if err != nil {
			return
		}
	}
}

func (o *output) write(p []byte) {
	for len(p) > 0 {
		o.mu.Lock()
		unread := int(o.start + uint64(len(o.data)) - max(o.read, o.start))
		n := min(len(p), ahead-unread)
		if o.dropped {
			o.mu.Unlock()
			return
		}
		if n > 0 {
			o.data = append(o.data, p[:n]...)
			p = p[n:]
			o.tell()
		}
		changed := o.changed
		o.mu.Unlock()
		if n <= 0 {
			<-changed
		}
	}
}

// tell wakes whoever waits. The caller holds the lock.
func (o *output) tell() {
	close(o.changed)
	o.changed = make(chan struct{})
}

func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	o.tell()
}

// drop lets go of a program whose output nobody wants any more.
func (o *output) drop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dropped, o.ended = true, true
	o.tell()
}

// at returns what comes at an offset, waiting for it; io.EOF after the end.
func (o *output) at(ctx context.Context, offset uint64) ([]byte, error) {
	for {
		part, changed, err := o.look(offset)
		if part != nil || err != nil {
			return part, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// chunk is the most that one message holds, in bytes.
const chunk = 256 << 10

func (o *output) look(offset uint64) (part []byte, changed chan struct{}, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if offset < o.start {
		return nil, nil, errForgotten
	}
	if from := offset - o.start; from < uint64(len(o.data)) {
		part = append(part, o.data[from:min(uint64(len(o.data)), from+chunk)]...)
		o.read = max(o.read, offset+uint64(len(part)))
		if old := int(o.read-o.start) - kept; old > kept {
			o.data, o.start = append([]byte(nil), o.data[old:]...), o.start+uint64(old)
		}
		o.tell()
		return part, nil, nil
	}
	if o.ended {
		return nil, nil, io.EOF
	}
	return nil, o.changed, nil
}
