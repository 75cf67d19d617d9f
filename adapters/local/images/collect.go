package images

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// collect removes the images that no name means any more and that nothing uses. In doubt it keeps them, and
// what it cannot remove the next one removes: the image that was just made is there either way. The caller
// holds the lock.
func (s *Store) collect(ctx context.Context) {
	if s.options.InUse == nil || s.shared() {
		return
	}
	named, err := s.named()
	if err != nil {
		return
	}
	records, err := filepath.Glob(filepath.Join(s.dir, "*", recordFile))
	if err != nil {
		return
	}
	for _, record := range records {
		image := filepath.Dir(record)
		if id := filepath.Base(image); !named[id] && !strings.HasPrefix(id, newPrefix) {
			s.discard(ctx, image)
		}
	}
}

// shared says that the folder is a link to somewhere else: the boxes of others may use what is there.
func (s *Store) shared() bool {
	fi, err := os.Lstat(s.dir)
	return err != nil || fi.Mode().Type() == fs.ModeSymlink
}

// named are the ids that a name means.
func (s *Store) named() (map[string]bool, error) {
	names := filepath.Join(s.dir, namesFolder)
	entries, err := os.ReadDir(names)
	if err != nil {
		return nil, err
	}
	ids := map[string]bool{}
	for _, e := range entries {
		to, err := os.Readlink(filepath.Join(names, e.Name()))
		if err != nil {
			return nil, err
		}
		ids[filepath.Base(to)] = true
	}
	return ids, nil
}

// discard removes one image that nothing uses. It is looked at again when it has lost its name: who found the
// image before that has said so by then, and who comes later finds nothing.
func (s *Store) discard(ctx context.Context, image string) {
	if s.used(image) {
		return
	}
	out := filepath.Join(s.dir, newPrefix+"old-"+filepath.Base(image)) // swept, should this process end here
	if err := os.Rename(image, out); err != nil {
		return
	}
	if s.used(out) {
		_ = os.Rename(out, image)
		return
	}
	_ = s.remove(context.WithoutCancel(ctx), out)
}

// used says whether anything uses the image, or may: what uses a folder that is not there uses perhaps this one.
func (s *Store) used(image string) bool {
	own, err := os.Stat(filepath.Join(image, rootFolder))
	if err != nil {
		return true
	}
	folders, err := s.options.InUse()
	if err != nil {
		return true
	}
	for _, folder := range folders {
		if fi, err := os.Stat(folder); err != nil || os.SameFile(fi, own) {
			return true
		}
	}
	return false
}
