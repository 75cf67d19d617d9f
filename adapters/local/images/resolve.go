package images

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/isthmus/isthmus/adapters"
)

// List returns the image of every name, sorted by name.
func (s *Store) List() ([]Image, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, namesFolder))
	if err != nil {
		return nil, err
	}
	var found []Image
	for _, e := range entries {
		if checkName(e.Name()) != nil {
			continue
		}
		img, err := s.read(e.Name())
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		}
		found = append(found, img)
	}
	return found, nil
}

// Resolve finds the image that a name means. A name that nothing has is KindNotFound with the names that
// there are, also when it is that of the base image, which then was not built yet. Those names include the further ones,
// by which the caller finds images of this store.
func (s *Store) Resolve(name string, further ...string) (Image, error) {
	for _, n := range meanings(name) {
		img, err := s.read(n)
		if err == nil {
			return img, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return Image{}, adapters.Wrap(adapters.KindInternal, err, "template "+name+" cannot be read: see the server's log")
		}
	}
	return Image{}, s.unknown(name, further)
}

// meanings are the names to look up for a name, in order.
func meanings(name string) []string {
	switch {
	case checkName(name) != nil:
		return nil
	case isAlias(name):
		return []string{name, Base}
	}
	return []string{name}
}

// isAlias says whether the base image serves under this name too.
func isAlias(name string) bool { return name == "node" || name == "python" }

func (s *Store) unknown(name string, further []string) error {
	list, err := s.List()
	if err != nil {
		return adapters.Wrap(adapters.KindInternal, err, "the images cannot be listed: see the server's log")
	}
	var names []string
	for _, i := range list {
		names = append(names, i.Name)
		if i.Name == Base {
			names = append(names, "node", "python")
		}
	}
	names = append(names, further...)
	slices.Sort(names)
	names = slices.Compact(names)
	switch {
	case name == Base || isAlias(name):
		return adapters.Errorf(adapters.KindNotFound, "template '%s' not found: the base image was not built yet; run `isthmus images build`", name)
	case len(names) == 0:
		return adapters.Errorf(adapters.KindNotFound, "template '%s' not found: there is no image yet; run `isthmus images build`", name)
	}
	return adapters.Errorf(adapters.KindNotFound, "template '%s' not found: there are %s", name, strings.Join(names, ", "))
}

// read reads the image of exactly this name. What is not there is looked for again: the name may just have
// been given to another image, and the old one removed.
func (s *Store) read(name string) (Image, error) {
	img, err := s.readNow(name)
	if errors.Is(err, fs.ErrNotExist) {
		img, err = s.readNow(name)
	}
	return img, err
}

func (s *Store) readNow(name string) (Image, error) {
	dir, err := filepath.EvalSymlinks(filepath.Join(s.dir, namesFolder, name))
	if err != nil {
		return Image{}, err
	}
	b, err := os.ReadFile(filepath.Join(dir, recordFile))
	if err != nil {
		return Image{}, err
	}
	img := Image{Name: name, Root: filepath.Join(dir, rootFolder)}
	if err := json.Unmarshal(b, &img); err != nil {
		return Image{}, err
	}
	return img, nil
}
