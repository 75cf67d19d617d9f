package badger

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/store/kv"
)

const (
	// tableSize is how much a log of Badger's takes before the next one is begun, in bytes.
	tableSize = 8 << 20
	// logSize is the most that one is written to: the last transaction may reach over tableSize.
	logSize = tableSize + 2<<20
	// safeFill is how much may surely be written before the next log is begun, and the old one is made a table.
	safeFill = tableSize - 2<<20
	// lookEvery is how much is written before the folder is looked through again for the next log: a look at every
	// write would cost more than the write.
	lookEvery = 128 << 10
	// openRoom are the free bytes with which a folder can be opened.
	openRoom = 24 << 20
	// lowRoom is below which the operator is told, no log is made a table, tables are not merged, and what can be
	// done without is not written any more.
	lowRoom = 256 << 20
	// headroom is left free when the ballast is made.
	headroom  = 4 << 20
	logSuffix = ".mem"
)

// room keeps a full disk from ending the process. Badger writes through mappings of sparse files, and where the
// disk has no block for one the kernel sends a signal that cannot be handled. So the log that is written to and
// the next one get their blocks ahead, and what makes new files is let happen only while there is much room. The ballast
// gives the room for opening and closing when nothing else does.
type room struct {
	dir     string
	log     *slog.Logger
	ballast ballast
	free    func() int64
	lock    *os.File
	// begun tells that Badger writes into its next log.
	begun chan struct{}

	mu       sync.Mutex
	active   int   // the number of the log that is written to
	written  int64 // into it, at most
	unlooked int64 // written since the last look for the next log
	warned   bool
}

func newRoom(dir string, log *slog.Logger) *room {
	r := &room{dir: dir, log: log, ballast: ballast{path: filepath.Join(dir, "ballast")}, begun: make(chan struct{}, 1)}
	r.free = func() int64 { return freeBytes(dir) }
	return r
}

// beforeOpen makes room for the opening, or says that there is none. Whatever it returns, unlock must follow.
func (r *room) beforeOpen() error {
	err := r.lockAndClear()
	if errors.Is(err, unix.ENOSPC) || err == nil && !r.need(openRoom) {
		return fmt.Errorf("%w: %d MiB are free in %s and %d are needed to open the store: make room there and try again; "+
			"nothing was lost", kv.ErrFull, r.free()>>20, filepath.Dir(r.dir), openRoom>>20)
	}
	return err
}

func (r *room) lockAndClear() error {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	var err error
	if r.lock, err = os.OpenFile(filepath.Join(r.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return err
	}
	if err := unix.Flock(int(r.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("%w: %s", ErrLocked, r.dir)
	}
	return r.removeSpare()
}

// unlock lets others open the folder.
func (r *room) unlock() error {
	if r.lock == nil {
		return nil
	}
	return r.lock.Close()
}

// opened prepares for a disk that becomes full from now on.
func (r *room) opened() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.follow()
	r.reserve(filepath.Join(r.dir, "DISCARD"), 1<<20)
	r.prepare()
	pending := int64(0) // what is still being made tables
	for number, size := range r.logs() {
		if number != r.active {
			pending += size
		}
	}
	r.ballast.grow(r.free() - headroom - pending)
}

// tend is called now and then: it follows Badger to its next log, and tells the operator once of a disk that is
// almost full.
func (r *room) tend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.follow()
	r.prepare()
	r.ballast.grow(r.free() - headroom)
	free := r.free()
	if low := free < lowRoom; low != r.warned {
		r.warned = low
		if low {
			r.log.Warn("the disk of the data folder is almost full: new sandboxes are refused, samples and log lines are not kept; make room or end sandboxes",
				"free_mib", free>>20, "folder", r.dir)
		} else {
			r.log.Info("the disk of the data folder has room again", "free_mib", free>>20)
		}
	}
}

// admit lets a transaction begin. While there is room all may; without it, as many as surely fit into the log.
func (r *room) admit() error {
	if r.free() >= lowRoom {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.written < safeFill {
		return nil
	}
	if r.follow(); r.written < safeFill {
		return nil
	}
	return kv.ErrFull
}

// low reports that what vanishes by itself should not be written.
func (r *room) low() bool { return r.free() < lowRoom }

// wrote counts what a transaction wrote, in bytes.
func (r *room) wrote(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written += n
	r.unlooked += n
	if r.written >= safeFill && r.unlooked >= lookEvery {
		r.follow()
	}
}

// beforeClose reports whether the log can be made a table.
func (r *room) beforeClose() bool { return r.need(logSize) }

// closed leaves things as the next opening wants them.
func (r *room) closed() error {
	err := r.removeSpare()
	r.ballast.grow(r.free() - headroom)
	return err
}

// need makes room of the ballast when there is none. It reports whether there is room now.
func (r *room) need(bytes int64) bool {
	if r.free() >= bytes {
		return true
	}
	r.ballast.drop()
	return r.free() >= bytes
}

// follow finds the log that is written to, which is the one with the highest number. The next one, which waits
// for its turn, is empty.
func (r *room) follow() {
	newest := 0
	for number, size := range r.logs() {
		if size > 0 {
			newest = max(newest, number)
		}
	}
	if newest != r.active {
		r.active, r.written = newest, r.unlooked // what was written since the last look may be in it
		select {
		case r.begun <- struct{}{}:
		default: // it is told already
		}
	}
	r.unlooked = 0
}

// prepare gives blocks to the log that is written to, and to the next one, which Badger will find and take for
// new because it is empty.
func (r *room) prepare() {
	r.reserve(r.path(r.active), logSize)
	next := r.path(r.active + 1)
	f, err := os.OpenFile(next, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return // there already
	}
	_ = f.Close()
	_ = r.reserve(next, logSize)
}

// reserve gives blocks to a file without changing its size. A file system that knows no such thing leaves it to
// admit alone.
func (r *room) reserve(path string, bytes int64) bool {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, bytes) == nil
}

// removeSpare removes the log that waits for its turn: at the opening Badger would take it for a broken one.
func (r *room) removeSpare() error {
	for number, size := range r.logs() {
		if size > 0 {
			continue
		}
		if err := os.Remove(r.path(number)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// logs are the sizes of Badger's logs by their numbers.
func (r *room) logs() map[int]int64 {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return nil
	}
	sizes := map[int]int64{}
	for _, e := range entries {
		var number int
		if _, err := fmt.Sscanf(strings.TrimSuffix(e.Name(), logSuffix), "%d", &number); err != nil || !strings.HasSuffix(e.Name(), logSuffix) {
			continue
		}
		if info, err := e.Info(); err == nil {
			sizes[number] = info.Size()
		}
	}
	return sizes
}

func (r *room) path(number int) string {
	return filepath.Join(r.dir, fmt.Sprintf("%05d%s", number, logSuffix))
}

// freeBytes is what this process can still write; a folder that cannot be asked has room.
func freeBytes(dir string) int64 {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil && unix.Statfs(filepath.Dir(dir), &st) != nil {
		return lowRoom
	}
	blocks := st.Bavail
	if os.Geteuid() == 0 {
		blocks = st.Bfree // a part is kept for root
	}
	return int64(blocks) * st.Frsize
}
