package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local"
	"github.com/isthmus/isthmus/adapters/local/images"
	"github.com/isthmus/isthmus/server"
	"github.com/isthmus/isthmus/server/config"
)

// templates finds root file systems for template names.
type templates struct {
	images *images.Store
	// names are further names of images, from the configuration.
	names map[string]string
}

var _ local.Images = templates{}

func openTemplates(c config.Config) (templates, error) {
	store, err := openImages(c)
	return templates{images: store, names: c.Local.Images}, err
}

// Root implements local.Images.
func (t templates) Root(ctx context.Context, name string) (local.Root, error) {
	image, further := t.names[name]
	if !further {
		image = name
	}
	found, err := t.images.Resolve(image)
	switch {
	case err != nil && further && adapters.KindOf(err) == adapters.KindNotFound:
		return local.Root{}, adapters.Wrap(adapters.KindNotFound, err, fmt.Sprintf("template '%s' not found: "+
			"the configuration (local.images) says that it is image '%s', which is not there; see `isthmus images list`", name, image))
	case err != nil:
		if named := t.nameOf(name); named != "" {
			return t.Root(ctx, named)
		}
		if found, err = t.images.Resolve(image, t.served()...); err != nil {
			return local.Root{}, err
		}
	}
	root := local.Root{Name: found.Name, Layers: []string{found.Root}, Env: found.Env}
	if further {
		root.Name = name
	}
	return root, nil
}

// served are the further names whose image is there.
func (t templates) served() []string {
	var names []string
	for name, image := range t.names {
		if _, err := t.images.Resolve(image); err == nil {
			names = append(names, name)
		}
	}
	return names
}

// nameOf finds the name whose template has this id; "" when there is none.
func (t templates) nameOf(id string) string {
	list, err := t.images.List()
	if err != nil {
		return ""
	}
	names := slices.Collect(maps.Keys(t.names))
	for _, image := range list {
		names = append(names, image.Name)
	}
	for _, name := range names {
		if local.TemplateID(name) == id {
			return name
		}
	}
	return ""
}

func openImages(c config.Config) (*images.Store, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return images.Open(filepath.Join(c.Data, "images"), images.Options{
		Helper: []string{self, imageStep},
		InUse:  func() ([]string, error) { return local.Layers(c.Data) },
	})
}

// buildBase makes the base image when there is none. Without isolation a sandbox has the machine's own files.
func buildBase(ctx context.Context, c config.Config, progress io.Writer) error {
	needed := slices.ContainsFunc(c.AllPools(), func(p config.Pool) bool { return p.Provider == config.ProviderLocal })
	if c.Local.Isolation == "process" || !needed {
		return nil
	}
	store, err := openImages(c)
	if err != nil {
		return err
	}
	if _, err := store.Resolve(images.Base); adapters.KindOf(err) != adapters.KindNotFound {
		return err
	}
	if err := server.CanListen(c); err != nil {
		return err // nobody waits for a build to hear this
	}
	fmt.Fprintln(progress, "There is no base image yet: building it, which takes one to three minutes and 400 MB (--no-build starts without it).")
	if _, err := store.Build(ctx, images.Base, progress); err != nil {
		return fmt.Errorf("the base image could not be built: %w", err)
	}
	return nil
}
