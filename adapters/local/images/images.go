// Package images keeps the root file systems that local boxes start from: unpacked, read-only in use, each
// in a folder named by what it was made of, so that building twice costs nothing and boxes that run keep
// what they started on.
//
// The folder holds <id>/root and <id>/image.json for each image, and names/<name>, links that say which
// image a name means at the moment. Files have the owners that they have in a box: as root those ids
// themselves (boxes map them), as an ordinary user the user's own id for root and its subordinate ids for
// the rest, which takes a helper process in a user namespace.
package images

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// Base is the name of the image that Build makes; node and python mean the same one unless imported.
const Base = "base"

const (
	namesFolder = "names"
	rootFolder  = "root"
	recordFile  = "image.json"
	lockFile    = "lock"
	newPrefix   = "new-" // folders of what is being made
)

// Options say how images are made.
type Options struct {
	// Helper is the command, without its last two arguments, that calls Help with them: an ordinary user's
	// images are unpacked by it in a user namespace. Root needs none.
	Helper []string
	// InUse returns the roots, and other folders, that boxes are made of. Images that no name means any more
	// are removed when it does not return theirs; nil: they never are.
	InUse func() ([]string, error)
}

// Store is a folder of images. Its methods are safe for concurrent use, also by several processes.
type Store struct {
	dir     string
	options Options
}

// Image is one unpacked root file system.
type Image struct {
	// ID names what the image was made of.
	ID string `json:"id"`
	// Name is the name it was found by.
	Name string `json:"-"`
	// Root is the folder of the root file system.
	Root string `json:"-"`
	// Env are the image's own environment variables.
	Env map[string]string `json:"env,omitempty"`
	// Source says for people where it came from.
	Source string `json:"source"`
	// CreatedAt is when it was made here.
	CreatedAt time.Time `json:"createdAt"`
}

// Open makes the folder when it is missing.
func Open(dir string, o Options) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, namesFolder), 0o755); err != nil {
		return nil, fmt.Errorf("the folder of images: %w", err)
	}
	return &Store{dir: dir, options: o}, nil
}

// make makes an image in a folder of its own, which gets its name only when it is whole. An image of that id
// that is there already is taken as it is. The caller holds the lock.
func (s *Store) make(ctx context.Context, img Image, fill func(root string) error) error {
	if err := s.sweep(ctx); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(s.dir, img.ID, recordFile)); err == nil {
		return nil
	}
	temp, err := os.MkdirTemp(s.dir, newPrefix)
	if err != nil {
		return err
	}
	err = s.fill(ctx, temp, img, fill)
	if err == nil {
		err = os.Rename(temp, filepath.Join(s.dir, img.ID))
	}
	if err != nil {
		_ = s.remove(context.WithoutCancel(ctx), temp)
		if ctx.Err() != nil {
			return ctx.Err() // what a program said when it was stopped is no news
		}
	}
	return err
}

func (s *Store) fill(ctx context.Context, temp string, img Image, fill func(root string) error) error {
	root := filepath.Join(temp, rootFolder)
	for dir, mode := range map[string]fs.FileMode{temp: 0o755, root: 0o755} {
		if err := os.MkdirAll(dir, mode); err != nil {
			return err
		}
		if err := os.Chmod(dir, mode); err != nil { // whatever the umask
			return err
		}
	}
	if err := fill(root); err != nil {
		return err
	}
	if err := s.finish(ctx, root); err != nil {
		return err
	}
	img.CreatedAt = time.Now().UTC()
	b, err := json.MarshalIndent(img, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(temp, recordFile), append(b, '\n'), 0o644)
}

// sweep removes what an earlier process left unfinished. The caller holds the lock, so nobody works there.
func (s *Store) sweep(ctx context.Context) error {
	left, err := filepath.Glob(filepath.Join(s.dir, newPrefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range left {
		if err := s.remove(ctx, dir); err != nil {
			return err
		}
	}
	return s.sweepWork()
}

// point makes the name mean the image from now on.
func (s *Store) point(name, id string) error {
	link := filepath.Join(s.dir, namesFolder, name)
	temp := filepath.Join(s.dir, namesFolder, ".new-"+name)
	_ = os.Remove(temp)
	if err := os.Symlink(filepath.Join("..", id), temp); err != nil {
		return err
	}
	return os.Rename(temp, link)
}

// checkName refuses what cannot be a template's name.
func checkName(name string) error {
	if !regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,127}$`).MatchString(name) {
		return adapters.Errorf(adapters.KindInvalid, "%q is not a name for an image: use at most 128 of a-z, 0-9, -, _ and .", name)
	}
	return nil
}
