package kubernetes

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/isthmus/isthmus/adapters"
)

// Resolve finds a template by its configured name or id, or takes the name for that of an image where the pool
// allows any.
func (c *Cluster) Resolve(_ context.Context, name string) (adapters.Template, error) {
	names := slices.Sorted(maps.Keys(c.config.Templates))
	for _, one := range names {
		if name == one || name == templateID(one) {
			return c.template(one, c.config.Templates[one]), nil
		}
	}
	if c.config.AnyImage && strings.ContainsAny(name, "/:") {
		return c.template(name, name), nil
	}
	return adapters.Template{}, adapters.Errorf(adapters.KindNotFound, "there is no template %q in this pool: there is %s", name, strings.Join(names, ", "))
}

func (c *Cluster) template(name, image string) adapters.Template {
	sum := sha256.Sum256([]byte(image))
	return adapters.Template{ID: templateID(name), Name: name, Version: hex.EncodeToString(sum[:8]), Resources: c.config.Default}
}

// image is the image of a template that Resolve has given out.
func (c *Cluster) image(t adapters.Template) (string, error) {
	if image, there := c.config.Templates[t.Name]; there && templateID(t.Name) == t.ID {
		return image, nil
	}
	if c.config.AnyImage && strings.ContainsAny(t.Name, "/:") {
		return t.Name, nil
	}
	return "", adapters.Errorf(adapters.KindNotFound, "there is no template %q in this pool", t.Name)
}

// templateID is the id of a name; it stays the same.
func templateID(name string) string {
	sum := sha256.Sum256([]byte("template " + name))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:20]
}
