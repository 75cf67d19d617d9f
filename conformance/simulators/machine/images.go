//go:build linux

package machine

import (
	"context"

	"github.com/isthmus/isthmus/adapters/local"
	"github.com/isthmus/isthmus/adapters/local/images"
)

// Folder is a folder of images as `isthmus images` keeps one (images below a data folder). The names node and python
// are the base image there, unless images of these names were imported.
func Folder(path string) (local.Images, error) {
	store, err := images.Open(path, images.Options{})
	if err != nil {
		return nil, err
	}
	return folder{store}, nil
}

type folder struct{ store *images.Store }

// Root finds the image of a name.
func (f folder) Root(_ context.Context, name string) (local.Root, error) {
	found, err := f.store.Resolve(name)
	if err != nil {
		return local.Root{}, err
	}
	return local.Root{Name: found.Name, Layers: []string{found.Root}, Env: found.Env}, nil
}
