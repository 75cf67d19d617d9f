//go:build linux

package local

import (
	"sync"

	"github.com/isthmus/isthmus/adapters"
)

// boxes is the table of what this process knows. An id that is being made is in it without a box.
type boxes struct {
	mu    sync.Mutex
	table map[string]entry
}

type entry struct {
	box       *box     // nil while it is being made
	left      *remains // set: there is nothing but these, and box is nil
	resources adapters.Resources
}

// paused reports whether the box is stopped and can be resumed.
func (e entry) paused() bool { return e.left != nil && e.left.known.Paused }

// reserve takes an id for a create: KindExists when it is taken, KindCapacity when the machine's ceiling
// would be passed.
func (t *boxes) reserve(id string, want adapters.Resources, most Ceiling) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, taken := t.table[id]; taken {
		return adapters.Errorf(adapters.KindExists, "a sandbox with the id %s is there already", id)
	}
	if err := t.room(id, want, most); err != nil {
		return err
	}
	t.table[id] = entry{resources: want}
	return nil
}

// rouse takes what a paused box needs to run again, from the same ceiling.
func (t *boxes) rouse(id string, want adapters.Resources, most Ceiling) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.room(id, want, most); err != nil {
		return err
	}
	t.table[id] = entry{left: t.table[id].left, resources: want}
	return nil
}

// room refuses one more box when the ceiling would be passed. The caller holds the lock.
func (t *boxes) room(id string, want adapters.Resources, most Ceiling) error {
	sum, running := want, 1
	for other, e := range t.table {
		if other == id {
			continue
		}
		if !e.paused() {
			running++
		}
		sum.CPU += e.resources.CPU
		sum.MemoryMB += e.resources.MemoryMB
		sum.DiskMB += e.resources.DiskMB
	}
	full := func(used, limit int) bool { return limit > 0 && used > limit }
	if full(running, most.Boxes) || full(sum.CPU, most.CPU) || full(sum.MemoryMB, most.MemoryMB) || full(sum.DiskMB, most.DiskMB) {
		return adapters.Errorf(adapters.KindCapacity,
			"this machine runs %d sandboxes and its configured ceiling has no room for another: kill one, or raise the ceiling", running-1)
	}
	return nil
}

// claim takes a box that was made ahead and fits, and reserves the new id in its place: so it is claimed once.
func (t *boxes) claim(id string, fits func(*box) bool) (*box, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, taken := t.table[id]; taken {
		return nil, adapters.Errorf(adapters.KindExists, "a sandbox with the id %s is there already", id)
	}
	for old, e := range t.table {
		if e.box == nil || !fits(e.box) {
			continue
		}
		delete(t.table, old)
		t.table[id] = entry{resources: e.resources}
		return e.box, nil
	}
	return nil, adapters.Errorf(adapters.KindNotFound, "no sandbox was made ahead that fits")
}

// withdraw takes a stocked box out, but keeps its id and its share of the machine until it is destroyed.
func (t *boxes) withdraw(id string) (*remains, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.table[id]
	left := e.left
	if e.box != nil {
		left = e.box.remains()
	}
	if left == nil || left.known.SandboxID != "" {
		return nil, adapters.Errorf(adapters.KindNotFound, "no box %s was made ahead, or it was claimed", id)
	}
	t.table[id] = entry{resources: e.resources}
	return left, nil
}

// add puts a made or adopted box in.
func (t *boxes) add(b *box) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.table[b.as().record.BoxID] = entry{box: b, resources: b.as().record.Resources}
}

// leave puts in what only a Destroy can do something with, or a Resume: a paused box needs its disk alone.
func (t *boxes) leave(left *remains) {
	t.mu.Lock()
	defer t.mu.Unlock()
	resources := left.record.Resources
	if left.known.Paused {
		resources = adapters.Resources{DiskMB: resources.DiskMB}
	}
	t.table[left.known.ID] = entry{left: left, resources: resources}
}

// paused returns a paused box; nil: it is not one.
func (t *boxes) paused(id string) *remains {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.table[id]; e.paused() {
		return e.left
	}
	return nil
}

func (t *boxes) remove(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.table, id)
}

// get returns a box, or KindNotFound; one that is being made is not there yet.
func (t *boxes) get(id string) (*box, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.table[id]
	switch {
	case e.box != nil:
		return e.box, nil
	case e.paused():
		return nil, adapters.Errorf(adapters.KindPrecondition, "the sandbox %s is paused: resume it first", id)
	case e.left != nil && e.left.known.Alive:
		return nil, adapters.Errorf(adapters.KindUnavailable, unreachable)
	}
	return nil, gone(id)
}

// removable returns what a Destroy of the id removes; nil: nothing is there, or it is being made.
func (t *boxes) removable(id string) *remains {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.table[id]
	if e.box != nil {
		return e.box.remains()
	}
	return e.left
}

// remaining returns all that only a Destroy can do something with.
func (t *boxes) remaining() []*remains {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []*remains
	for _, e := range t.table {
		if e.left != nil {
			list = append(list, e.left)
		}
	}
	return list
}

// all returns every finished box.
func (t *boxes) all() []*box {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]*box, 0, len(t.table))
	for _, e := range t.table {
		if e.box != nil {
			list = append(list, e.box)
		}
	}
	return list
}
