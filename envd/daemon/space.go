package daemon

import (
	"io/fs"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	// countAgain is how old a count of the files may be, countTime how long one may take: where there are more files
	// than that, the last complete count stands.
	countAgain = 20 * time.Second
	countTime  = 5 * time.Second
)

// space counts what the files of the box take, where the file system tells of a disk around the box.
type space struct {
	mu   sync.Mutex
	at   time.Time
	used uint64
}

// count is the size of all files below a root on its file system, in bytes.
func (s *space) count(root string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.at) < countAgain && !s.at.IsZero() {
		return s.used
	}
	began := time.Now()
	var device, used uint64
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what went away meanwhile takes nothing
		}
		info, err := entry.Info()
		if err != nil {
			return nil //nolint:nilerr // as above
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		switch {
		case time.Since(began) > countTime:
			return fs.ErrInvalid
		case !ok:
		case path == root:
			device = stat.Dev
		case entry.IsDir() && stat.Dev != device:
			return filepath.SkipDir // another file system
		}
		if ok {
			used += uint64(stat.Blocks) * 512
		}
		return nil
	})
	s.at = time.Now()
	if err == nil {
		s.used = used
	}
	return s.used
}
