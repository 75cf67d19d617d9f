//go:build linux

package machine

import (
	"bytes"
	"io"
	"sync"
)

// maxHeld is how much of an output waits for its reader, in bytes. More holds the program up, as a pipe does.
const maxHeld = 1 << 20

// output is one stream of a process's output.
type output struct {
	mu     sync.Mutex
	change sync.Cond
	held   bytes.Buffer
	ended  bool // nothing more comes
	closed bool // nobody reads
}

func newOutput() *output {
	o := &output{}
	o.change.L = &o.mu
	return o
}

// Read waits for output, and returns io.EOF after its end.
func (o *output) Read(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.held.Len() == 0 && !o.ended && !o.closed && len(b) > 0 {
		o.change.Wait()
	}
	switch {
	case o.closed:
		return 0, io.ErrClosedPipe
	case o.held.Len() == 0 && o.ended:
		return 0, io.EOF
	}
	o.change.Broadcast()
	n, _ := o.held.Read(b) // what is held is read without an error
	return n, nil
}

// add holds a piece, when there is room for it; what nobody will read is dropped.
func (o *output) add(piece []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(piece) > 0 && o.held.Len() > 0 && o.held.Len()+len(piece) > maxHeld && !o.closed {
		o.change.Wait()
	}
	if !o.closed {
		o.held.Write(piece)
		o.change.Broadcast()
	}
}

// end says that nothing more comes.
func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	o.change.Broadcast()
}

// close says that nobody reads any more.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.change.Broadcast()
}
