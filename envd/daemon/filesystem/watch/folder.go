package watch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/envd/filesystem"
)

// folder is one watched folder as one watcher sees it. The engine's lock guards it.
type folder struct {
	watcher *Watcher
	node    *node
	// name is relative to the watcher's root; "" is the root itself.
	name string
	// announced are entries found when the folder was entered and told of then. The kernel may tell of them
	// too, once, if they were made after its watch began.
	announced map[string]struct{}
	// leaving is set between the kernel's "moved from here" and what tells whether it left the tree.
	leaving bool
}

// attach watches a folder for a watcher, or finds that it does already: then it was renamed to name, and
// everything below goes with it. It reports whether the folder is new to the watcher. The caller holds the lock.
func (e *Engine) attach(w *Watcher, name string) (*folder, bool, error) {
	if e.fd < 0 {
		return nil, false, ErrClosed
	}
	flags := uint32(mask | unix.IN_ONLYDIR | unix.IN_DONT_FOLLOW)
	got, err := unix.InotifyAddWatch(e.fd, filepath.Join(w.root, name), flags)
	if err == unix.ENOSPC {
		return nil, false, ErrLimit
	}
	if err != nil {
		return nil, false, os.NewSyscallError("inotify_add_watch", err)
	}
	wd := int32(got)
	n := e.nodes[wd]
	if n == nil {
		n = &node{wd: wd, folders: map[*Watcher]*folder{}}
		e.nodes[wd] = n
	}
	if f := n.folders[w]; f != nil {
		f.leaving = false
		if f.name != "" {
			e.rename(w, f.name, name)
		}
		return f, false, nil
	}
	if old := w.folders[name]; old != nil {
		// Another folder had that name before and we have not heard of its end yet.
		e.detach(old)
	}
	f := &folder{watcher: w, node: n, name: name}
	n.folders[w], w.folders[name] = f, f
	return f, true, nil
}

// rename moves a folder and all below it to another name, in the watcher's books.
func (e *Engine) rename(w *Watcher, from, to string) {
	if from == to {
		return
	}
	moved := map[string]*folder{}
	for name, f := range w.folders {
		if inside(name, from) {
			delete(w.folders, name)
			moved[to+name[len(from):]] = f
		}
	}
	for name, f := range moved {
		if old := w.folders[name]; old != nil {
			e.detach(old)
		}
		f.name = name
		w.folders[name] = f
	}
}

// leave ends the interest in a folder and all below it.
func (e *Engine) leave(w *Watcher, name string) {
	for below, f := range w.folders {
		if inside(below, name) {
			e.detach(f)
		}
	}
}

// inside reports whether name is folder or below it.
func inside(name, folder string) bool {
	rest, ok := strings.CutPrefix(name, folder)
	return ok && (rest == "" || rest[0] == '/')
}

// enter watches a folder that appeared, and what is below. With announce, everything found inside is told of
// as created: it was made before the watch began. The caller holds the lock.
func (e *Engine) enter(w *Watcher, name string, announce bool) {
	for waiting := []string{name}; len(waiting) > 0; {
		name, waiting = waiting[len(waiting)-1], waiting[:len(waiting)-1]
		f, fresh, err := e.attach(w, name)
		if errors.Is(err, ErrLimit) {
			e.end(w, err)
			return
		}
		if err != nil || !fresh {
			// It vanished again, which the kernel tells of; or it is watched with all below it.
			continue
		}
		// What cannot be read is as good as vanished.
		entries, _ := os.ReadDir(filepath.Join(w.root, name))
		for _, entry := range entries {
			child := filepath.Join(name, entry.Name())
			if announce {
				f.announce(entry.Name())
				e.push(w, Event{Name: child, Type: filesystem.EventType_EVENT_TYPE_CREATE})
			}
			if entry.IsDir() {
				waiting = append(waiting, child)
			}
		}
	}
}

func (f *folder) announce(name string) {
	if f.announced == nil {
		f.announced = map[string]struct{}{}
	}
	f.announced[name] = struct{}{}
}

// explore watches a watcher's root and, when it is recursive, what is below; nothing is told of. The lock is
// taken for each folder only, because a tree may be large.
func (e *Engine) explore(ctx context.Context, w *Watcher) error {
	for waiting := []string{""}; len(waiting) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		name := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		e.mu.Lock()
		_, fresh, err := e.attach(w, name)
		e.mu.Unlock()
		switch {
		case err != nil && (name == "" || errors.Is(err, ErrLimit) || errors.Is(err, ErrClosed)):
			return err
		case err != nil || !fresh || !w.recursive:
			continue
		}
		entries, _ := os.ReadDir(filepath.Join(w.root, name))
		for _, entry := range entries {
			if entry.IsDir() {
				waiting = append(waiting, filepath.Join(name, entry.Name()))
			}
		}
	}
	return nil
}
