// Package watch tells what changes in folders, by one inotify instance for the whole daemon: the kernel counts
// instances per user and allows few.
//
// An Engine owns the instance and one goroutine that reads it. A Watcher is one client's interest in a folder,
// with or without what is below it, and holds the events that the client has not taken yet. Several watchers
// of one folder share the kernel's watch. Nothing gets lost silently: when the kernel's queue or a watcher's
// own overflows, the watcher fails and says so.
package watch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Errors with which a watcher ends.
var (
	// ErrLost says that the kernel dropped events.
	ErrLost = errors.New("events were lost because files changed faster than they could be read:" +
		" list the folder and watch it again")
	// ErrFull says that the client did not take its events.
	ErrFull = fmt.Errorf("more than %d events are waiting to be taken: list the folder and watch it again", maxQueued)
	// ErrClosed says that the daemon ends.
	ErrClosed = errors.New("the sandbox daemon is shutting down")
	// ErrLimit says that the kernel allows no more watched folders.
	ErrLimit = errors.New("the machine's limit on watched folders (fs.inotify.max_user_watches) is reached:" +
		" watch fewer folders")
)

// mask is the same for every folder, because a second watch of a folder would replace the mask of the first.
const mask = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_MOVE_SELF | unix.IN_ATTRIB |
	unix.IN_MODIFY | unix.IN_DELETE | unix.IN_DELETE_SELF

// readSize is how much of the kernel's queue is read at once: a few hundred events.
const readSize = 16 << 10

// Engine reads the kernel's events and deals them out. The zero value is not usable; it opens the inotify
// instance at the first Watch and holds it until Close.
type Engine struct {
	mu     sync.Mutex
	closed bool
	file   *os.File
	fd     int
	done   chan struct{}
	buffer []byte
	nodes  map[int32]*node
	// watchers are those that have not failed.
	watchers map[*Watcher]struct{}
}

// node is one folder that the kernel watches, by its watch descriptor.
type node struct {
	wd      int32
	folders map[*Watcher]*folder
}

// New returns an engine that has opened nothing yet.
func New() *Engine {
	return &Engine{fd: -1, nodes: map[int32]*node{}, watchers: map[*Watcher]struct{}{}}
}

// open makes the inotify instance and starts the reader. The caller holds the lock.
func (e *Engine) open() error {
	switch {
	case e.closed:
		return ErrClosed
	case e.file != nil:
		return nil
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err == unix.EMFILE {
		return fmt.Errorf("the machine's limit on watchers (fs.inotify.max_user_instances) is reached: %w", err)
	}
	if err != nil {
		return os.NewSyscallError("inotify_init1", err)
	}
	file := os.NewFile(uintptr(fd), "inotify")
	raw, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return err
	}
	e.file, e.fd, e.buffer, e.done = file, fd, make([]byte, readSize), make(chan struct{})
	go func() {
		defer close(e.done)
		// The callback never says that it is done, so this ends when the file is closed.
		_ = raw.Read(func(uintptr) bool { e.Flush(); return false })
	}()
	return nil
}

// Close ends every watcher with ErrClosed and waits until the reader has ended.
func (e *Engine) Close() {
	e.mu.Lock()
	file := e.file
	e.closed, e.file, e.fd = true, nil, -1
	e.mu.Unlock()
	if file != nil {
		// Not under the lock: closing waits for the reader, which takes it.
		file.Close()
		<-e.done
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for w := range e.watchers {
		e.end(w, ErrClosed)
	}
}

// Flush deals out everything that the kernel has queued so far. The kernel queues a change before the call
// that made it returns, so after Flush a watcher holds what its client did before.
func (e *Engine) Flush() {
	for e.readOnce() {
	}
}

// readOnce deals out one read; it reports false when the queue was empty. The lock is let go in between, so
// that a flood of changes keeps nobody from it.
func (e *Engine) readOnce() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fd < 0 {
		return false
	}
	n, err := unix.Read(e.fd, e.buffer)
	if err == unix.EINTR {
		return true
	}
	if err != nil || n <= 0 {
		return false
	}
	for rest := e.buffer[:n]; len(rest) >= unix.SizeofInotifyEvent; {
		wd := int32(binary.NativeEndian.Uint32(rest))
		bits := binary.NativeEndian.Uint32(rest[4:])
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(rest[12:]))
		name, _, _ := strings.Cut(string(rest[unix.SizeofInotifyEvent:end]), "\x00")
		rest = rest[end:]
		e.dispatch(wd, bits, name)
	}
	return true
}

// dispatch gives one event of the kernel to all watchers of its folder. The caller holds the lock.
func (e *Engine) dispatch(wd int32, bits uint32, name string) {
	if bits&unix.IN_Q_OVERFLOW != 0 {
		for w := range e.watchers {
			e.end(w, ErrLost)
		}
		return
	}
	n := e.nodes[wd]
	if n == nil {
		return
	}
	if bits&unix.IN_IGNORED != 0 {
		e.forget(n)
		return
	}
	for w, f := range n.folders {
		if name == "" {
			e.onSelf(w, f, bits)
		} else {
			e.onChild(w, f, bits, name)
		}
	}
}

// forget drops a folder that the kernel no longer watches.
func (e *Engine) forget(n *node) {
	for w, f := range n.folders {
		if w.folders[f.name] == f {
			delete(w.folders, f.name)
		}
	}
	delete(e.nodes, n.wd)
}

// end fails a watcher, which keeps the error for its client, and lets go of its folders.
func (e *Engine) end(w *Watcher, err error) {
	w.fail(err)
	delete(e.watchers, w)
	for _, f := range w.folders {
		e.detach(f)
	}
}

// detach ends a watcher's interest in one folder.
func (e *Engine) detach(f *folder) {
	w, n := f.watcher, f.node
	if w.folders[f.name] == f {
		delete(w.folders, f.name)
	}
	delete(n.folders, w)
	if len(n.folders) == 0 && e.nodes[n.wd] == n {
		delete(e.nodes, n.wd)
		if e.fd >= 0 {
			// It fails when the folder is gone, which is what we want.
			_, _ = unix.InotifyRmWatch(e.fd, uint32(n.wd))
		}
	}
}
