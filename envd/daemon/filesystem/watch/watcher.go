package watch

import (
	"context"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/envd/filesystem"
)

// maxQueued bounds how many events wait for one client, some 6 MB.
const maxQueued = 1 << 16

// Event is one change, named relative to the watched folder; "." is that folder itself.
type Event struct {
	Name string
	Type filesystem.EventType
}

// Watcher is one client's interest in a folder. It is safe for use by several goroutines.
type Watcher struct {
	engine    *Engine
	root      string
	recursive bool
	// folders are the watched ones by their name; the engine's lock guards them.
	folders map[string]*folder

	mu     sync.Mutex
	events []Event
	err    error
	ready  chan struct{}
}

// Watch begins to watch a folder, given by an absolute path without links, and with recursive everything below
// it too. The caller closes the watcher. The error is ErrLimit, ErrClosed, the context's or the system's.
func (e *Engine) Watch(ctx context.Context, root string, recursive bool) (*Watcher, error) {
	w := &Watcher{
		engine: e, root: root, recursive: recursive,
		folders: map[string]*folder{}, ready: make(chan struct{}, 1),
	}
	e.mu.Lock()
	err := e.open()
	if err == nil {
		e.watchers[w] = struct{}{}
	}
	e.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := e.explore(ctx, w); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// Ready tells when there is something to take. A token may be left over from events that were taken already.
func (w *Watcher) Ready() <-chan struct{} { return w.ready }

// Take returns the events since the last call, oldest first. Once the watcher has failed it returns the
// error, and the events before that are void because some after them are missing.
func (w *Watcher) Take() ([]Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	events := w.events
	w.events = nil
	return events, w.err
}

// Close ends the watcher. Twice is fine.
func (w *Watcher) Close() {
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	w.engine.end(w, ErrClosed)
}

// fail keeps the first error.
func (w *Watcher) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err, w.events = err, nil
	}
	w.wake()
}

func (w *Watcher) wake() {
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// push queues an event. The caller holds the engine's lock.
func (e *Engine) push(w *Watcher, event Event) {
	w.mu.Lock()
	full := len(w.events) >= maxQueued
	if !full && w.err == nil {
		w.events = append(w.events, event)
		w.wake()
	}
	w.mu.Unlock()
	if full {
		e.end(w, ErrFull)
	}
}

// tell queues what an event of the kernel says about a name; several bits are told in this order.
func (e *Engine) tell(w *Watcher, bits uint32, name string) {
	for _, o := range [...]struct {
		bits uint32
		kind filesystem.EventType
	}{
		{unix.IN_CREATE | unix.IN_MOVED_TO, filesystem.EventType_EVENT_TYPE_CREATE},
		{unix.IN_MOVED_FROM | unix.IN_MOVE_SELF, filesystem.EventType_EVENT_TYPE_RENAME},
		{unix.IN_ATTRIB, filesystem.EventType_EVENT_TYPE_CHMOD},
		{unix.IN_MODIFY, filesystem.EventType_EVENT_TYPE_WRITE},
		{unix.IN_DELETE | unix.IN_DELETE_SELF | unix.IN_UNMOUNT, filesystem.EventType_EVENT_TYPE_REMOVE},
	} {
		if bits&o.bits != 0 {
			e.push(w, Event{Name: name, Type: o.kind})
		}
	}
}

// onSelf handles what happened to a watched folder itself. Of a folder below the root its parent tells, so
// that here only its leaving the tree counts.
func (e *Engine) onSelf(w *Watcher, f *folder, bits uint32) {
	switch {
	case f.name == "":
		e.tell(w, bits, ".")
	case bits&unix.IN_MOVE_SELF != 0 && f.leaving:
		e.leave(w, f.name)
	}
}

// onChild handles what happened to an entry of a watched folder.
func (e *Engine) onChild(w *Watcher, f *folder, bits uint32, entry string) {
	name := filepath.Join(f.name, entry)
	if _, told := f.announced[entry]; told && bits&(unix.IN_CREATE|unix.IN_DELETE|unix.IN_MOVED_FROM) != 0 {
		delete(f.announced, entry)
		if bits&unix.IN_CREATE != 0 {
			return
		}
	}
	e.tell(w, bits, name)
	if !w.recursive || bits&unix.IN_ISDIR == 0 {
		return
	}
	switch {
	case bits&unix.IN_CREATE != 0:
		e.enter(w, name, true)
	case bits&unix.IN_MOVED_TO != 0:
		e.enter(w, name, false)
	case bits&unix.IN_MOVED_FROM != 0:
		if moved := w.folders[name]; moved != nil {
			moved.leaving = true
		}
	}
}
