// Package idrange leases ranges of host user ids to boxes, by one file a range in the data folder: a box's
// ids are no other box's as long as anything of it is left, also over restarts of the facade.
package idrange

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Size is the number of ids in one range: uid_t 0 to 65535 inside a box.
const Size = 65536

// aside ends the name of a lease that is being written beside the one that it will replace; no range has such a name.
const aside = ".new"

// Leases is the table of ranges. It is safe for concurrent use by one process.
type Leases struct {
	dir   string
	first uint32
	end   uint64 // the first id behind all ranges

	others []uint32 // first ids of ranges that were leased from elsewhere

	mu    sync.Mutex
	taken map[uint32]string // first id of the range → owner
	next  uint32            // where to look first, so that ids are reused late
}

// ErrNone says that all ranges are leased.
var ErrNone = errors.New("no range of user ids is free")

// Open reads the leases in dir, which it makes. The ranges start at first and end at last; 0: at the last id that
// can be leased. The last id of all, 2^32-1, means "none" and is never leased. Nor are ids that are leased in one of
// the folders others now: their tables may have reached further before.
func Open(dir string, first, last uint32, others ...string) (*Leases, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	l := &Leases{dir: dir, first: first, next: first, end: 1<<32 - 1, taken: map[uint32]string{}}
	if last != 0 {
		l.end = min(l.end, uint64(last)+1)
	}
	for _, other := range others {
		if err := l.avoid(other); err != nil {
			return nil, err
		}
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), aside) { // its writer died before the lease had changed hands
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return nil, err
			}
			continue
		}
		base, err := strconv.ParseUint(e.Name(), 10, 32)
		if err != nil {
			continue
		}
		owner, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		if len(owner) == 0 { // its writer died before it had said who: nothing was made with it yet
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return nil, err
			}
			continue
		}
		l.taken[uint32(base)] = string(owner)
	}
	return l, nil
}

// avoid notes what is leased in another folder, which need not be there.
func (l *Leases) avoid(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if base, err := strconv.ParseUint(e.Name(), 10, 32); err == nil {
			l.others = append(l.others, uint32(base))
		}
	}
	return err
}

// Take leases a range to owner and returns its first id.
func (l *Leases) Take(owner string) (uint32, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	base, ok := l.free()
	if !ok {
		return 0, ErrNone
	}
	if err := os.WriteFile(l.file(base), []byte(owner), 0o600); err != nil {
		return 0, fmt.Errorf("lease user ids: %w", err)
	}
	l.taken[base] = owner
	l.next = base + Size
	return base, nil
}

// Release gives back every range of owner. None is success.
func (l *Leases) Release(owner string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for base, o := range l.taken {
		if o != owner {
			continue
		}
		if err := os.Remove(l.file(base)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		delete(l.taken, base)
	}
	return nil
}

// Rename passes the ranges of one owner on to another.
func (l *Leases) Rename(from, to string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for base, o := range l.taken {
		if o != from {
			continue
		}
		if err := l.replace(base, to); err != nil {
			return err
		}
		l.taken[base] = to
	}
	return nil
}

// replace changes the owner of a lease at once: a lease that is empty for a moment would be taken for none.
func (l *Leases) replace(base uint32, owner string) error {
	next := l.file(base) + aside
	if err := os.WriteFile(next, []byte(owner), 0o600); err != nil {
		return err
	}
	return os.Rename(next, l.file(base))
}

// Owners returns who holds ranges.
func (l *Leases) Owners() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	owners := make([]string, 0, len(l.taken))
	for _, o := range l.taken {
		owners = append(owners, o)
	}
	return owners
}

// free finds a range from next on, then from the start.
func (l *Leases) free() (uint32, bool) {
	if l.end <= uint64(l.first) {
		return 0, false
	}
	count := (l.end - uint64(l.first)) / Size
	start := uint64(l.next-l.first) / Size
	for i := range count {
		base := l.first + uint32((start+i)%count)*Size
		if !l.overlaps(base) {
			return base, true
		}
	}
	return 0, false
}

// overlaps reports whether a range shares ids with one that is taken, which may begin anywhere: the first id may
// have been another one when it was leased.
func (l *Leases) overlaps(base uint32) bool {
	if _, taken := l.taken[base]; taken {
		return true
	}
	for other := range l.taken {
		if shared(base, other) {
			return true
		}
	}
	return slices.ContainsFunc(l.others, func(other uint32) bool { return shared(base, other) })
}

func shared(a, b uint32) bool { return max(a, b)-min(a, b) < Size }

func (l *Leases) file(base uint32) string {
	return filepath.Join(l.dir, strconv.FormatUint(uint64(base), 10))
}
