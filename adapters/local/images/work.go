package images

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// newWork makes the folder of what a build needs beside the root. It is in the machine's folder of temporary files and
// not in the store's, which another id may not enter: an ordinary user's build reads it as one. Should this process be
// killed, the next build or import here removes it. The caller holds the lock.
func (s *Store) newWork() (string, error) {
	prefix, err := s.workPrefix()
	if err != nil {
		return "", err
	}
	work, err := os.MkdirTemp("", prefix)
	if err != nil {
		return "", err
	}
	return work, os.Chmod(work, 0o755)
}

// workPrefix begins the names of such folders: it is the store's own, by whose lock they are known to be left over.
func (s *Store) workPrefix() (string, error) {
	dir, err := filepath.EvalSymlinks(s.dir)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(dir))
	return "isthmus-image-" + hex.EncodeToString(sum[:8]) + "-", nil
}

// sweepWork removes what builds that were killed have left. The caller holds the lock.
func (s *Store) sweepWork() error {
	prefix, err := s.workPrefix()
	if err != nil {
		return err
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	if err != nil {
		return err
	}
	for _, one := range left {
		if !isOwn(one) {
			continue // anybody may make a folder there
		}
		if err := os.RemoveAll(one); err != nil {
			return err
		}
	}
	return nil
}

// isOwn reports whether a path is a folder of this user.
func isOwn(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != fs.ModeDir {
		return false
	}
	stat, known := info.Sys().(*syscall.Stat_t)
	return known && int(stat.Uid) == os.Geteuid()
}
