package process

import (
	"container/list"
	"fmt"
	"sync"
	"time"

	"connectrpc.com/connect"

	wire "github.com/isthmus/isthmus/envd/process"
)

// Exits are kept for clients that connect late.
const (
	// retention is how long.
	retention = 30 * time.Second
	// maxKept bounds what they take together, in bytes: some thousands of exits. The oldest go first.
	maxKept = 1 << 20
	// exitSize is about what one takes without its tag, in bytes.
	exitSize = 512
)

// exit is what is kept of a process that has ended.
type exit struct {
	pid    uint32
	tag    *string
	end    *wire.ProcessEvent
	forget *time.Timer
	// place is where it stands among the exits by age.
	place *list.Element
}

// size is about what the exit takes, in bytes.
func (e *exit) size() int {
	if e.tag == nil {
		return exitSize
	}
	return exitSize + len(*e.tag)
}

// table knows the live processes and the recent exits.
type table struct {
	mu    sync.Mutex
	live  map[uint32]*running
	exits map[uint32]*exit
	// byAge are the exits, the oldest first, and kept is what they take, in bytes.
	byAge list.List
	kept  int
}

func newTable() *table {
	return &table{live: map[uint32]*running{}, exits: map[uint32]*exit{}}
}

// add makes a process known. A kept exit of the same pid or tag is forgotten: the name means the new one.
func (t *table) add(r *running) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forgetSame(r.pid, r.tag)
	t.live[r.pid] = r
}

// end moves a process to the exits. A process that took over its pid stays.
func (t *table) end(r *running, end *wire.ProcessEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live[r.pid] != r {
		return
	}
	delete(t.live, r.pid)
	t.keep(r.pid, r.tag, end)
}

// keepExit keeps the exit of a process that never was live.
func (t *table) keepExit(pid uint32, tag *string, end *wire.ProcessEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forgetSame(pid, tag)
	t.keep(pid, tag, end)
}

func (t *table) keep(pid uint32, tag *string, end *wire.ProcessEvent) {
	e := &exit{pid: pid, tag: tag, end: end}
	e.forget = time.AfterFunc(retention, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.exits[pid] == e {
			t.forget(e)
		}
	})
	t.exits[pid], e.place, t.kept = e, t.byAge.PushBack(e), t.kept+e.size()
	for t.kept > maxKept && t.byAge.Len() > 1 {
		t.forget(t.byAge.Front().Value.(*exit))
	}
}

func (t *table) forgetSame(pid uint32, tag *string) {
	t.forget(t.exits[pid])
	if tag == nil {
		return
	}
	for _, e := range t.exits {
		if e.tag != nil && *e.tag == *tag {
			t.forget(e)
		}
	}
}

func (t *table) forget(e *exit) {
	if e != nil {
		e.forget.Stop()
		delete(t.exits, e.pid)
		t.byAge.Remove(e.place)
		t.kept -= e.size()
	}
}

// find answers the live process that a selector means.
func (t *table) find(selector *wire.ProcessSelector) (*running, error) {
	r, _, err := t.lookup(selector)
	if err == nil && r == nil {
		return nil, notFound(selector)
	}
	return r, err
}

// findRecent answers the live process that a selector means, else a recent exit.
func (t *table) findRecent(selector *wire.ProcessSelector) (*running, *exit, error) {
	r, e, err := t.lookup(selector)
	if err == nil && r == nil && e == nil {
		return nil, nil, notFound(selector)
	}
	return r, e, err
}

func (t *table) lookup(selector *wire.ProcessSelector) (*running, *exit, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch by := selector.GetSelector().(type) {
	case *wire.ProcessSelector_Pid:
		return t.live[by.Pid], t.exits[by.Pid], nil
	case *wire.ProcessSelector_Tag:
		for _, r := range t.live {
			if r.tag != nil && *r.tag == by.Tag {
				return r, nil, nil
			}
		}
		for _, e := range t.exits {
			if e.tag != nil && *e.tag == by.Tag {
				return nil, e, nil
			}
		}
		return nil, nil, nil
	}
	return nil, nil, connect.NewError(connect.CodeUnimplemented, fmt.Errorf("invalid input type %T", selector))
}

func notFound(selector *wire.ProcessSelector) error {
	if by, ok := selector.GetSelector().(*wire.ProcessSelector_Tag); ok {
		return connect.NewError(connect.CodeNotFound, fmt.Errorf("process with tag %s not found", by.Tag))
	}
	return connect.NewError(connect.CodeNotFound, fmt.Errorf("process with pid %d not found", selector.GetPid()))
}

func (t *table) all() []*running {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]*running, 0, len(t.live))
	for _, r := range t.live {
		all = append(all, r)
	}
	return all
}

// close stops the timers of the exits.
func (t *table) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.exits {
		t.forget(e)
	}
}
