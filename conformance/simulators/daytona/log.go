package daytona

import (
	"bytes"
	"strings"
	"sync"
)

// log is what a command wrote: as the daemon keeps it, with a mark before each line, and by output. Lines that have
// not ended are held back until they do.
type log struct {
	mu      sync.Mutex
	marked  []byte
	plain   []byte
	out     []byte
	failed  []byte
	partial map[string][]byte
	ended   map[string]bool
	// changed is closed and renewed whenever something was added.
	changed chan struct{}
}

func newLog() *log {
	return &log{partial: map[string][]byte{}, ended: map[string]bool{}, changed: make(chan struct{})}
}

// write adds what came on one output.
func (l *log) write(label string, text []byte) {
	if len(text) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	held := append(l.partial[label], text...)
	for {
		at := bytes.IndexByte(held, '\n')
		if at < 0 {
			break
		}
		l.add(label, held[:at+1])
		held = held[at+1:]
	}
	l.partial[label] = held
}

// add notes a line; mu is held.
func (l *log) add(label string, line []byte) {
	l.marked = append(append(l.marked, label...), line...)
	l.plain = append(l.plain, line...)
	if label == markOut {
		l.out = append(l.out, line...)
	} else {
		l.failed = append(l.failed, line...)
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// end adds what was held back on an output that has ended.
func (l *log) end(label string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held := l.partial[label]; len(held) > 0 {
		l.add(label, held)
		l.partial[label] = nil
	}
	l.ended[label] = true
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *log) over(label string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended[label]
}

// texts are all of it, and by output.
func (l *log) texts() (all, out, failed string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.ToValidUTF8(string(l.plain), "\uFFFD"), string(l.out), string(l.failed)
}

// from returns what there is after a position, with marks or without, whether that is all, and a channel that is
// closed when there is more.
func (l *log) from(position int, marks bool) (text []byte, over bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	whole := l.plain
	if marks {
		whole = l.marked
	}
	return whole[position:len(whole):len(whole)], l.ended[markOut] && l.ended[markErr], l.changed
}
