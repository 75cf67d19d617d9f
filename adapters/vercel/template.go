package vercel

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"regexp"
	"strings"

	"github.com/isthmus/isthmus/adapters"
)

// registry is the only one that sandboxes are made of.
const registry = "vcr.vercel.com"

// references is the form of an image of that registry, with or without its name before it.
var references = regexp.MustCompile(`^(vcr\.vercel\.com/)?[a-z0-9]+([._/-][a-z0-9]+)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?$`)

// checkImage refuses images of other registries, by name.
func checkImage(image string) error {
	host, _, hasPath := strings.Cut(image, "/")
	switch {
	case image == "":
		return nil
	case hasPath && host != registry && (strings.ContainsAny(host, ".:") || host == "localhost"):
		return fmt.Errorf("the image %s is of the registry %s: Vercel makes sandboxes of %s only, push it there", image, host, registry)
	case !references.MatchString(image):
		return fmt.Errorf("%q is no image: it must be like team/project/repository:tag", image)
	}
	return nil
}

// Resolve finds a template by its name or id, or takes an image of the vendor's registry for one.
func (p *place) Resolve(_ context.Context, name string) (adapters.Template, error) {
	var names []string
	for _, t := range p.config.Templates {
		if name == t.Name || name == templateID(t.Name) {
			return t.template(), nil
		}
		names = append(names, t.Name)
	}
	if strings.Contains(name, "/") {
		if err := checkImage(name); err != nil {
			return adapters.Template{}, adapters.Wrap(adapters.KindUnsupported, err, err.Error())
		}
		if strings.HasPrefix(name, registry+"/") {
			return Template{Name: name, Image: name}.template(), nil
		}
	}
	return adapters.Template{}, adapters.Errorf(adapters.KindNotFound, "there is no template %s in this pool: %s", name, strings.Join(names, ", "))
}

func (t Template) template() adapters.Template {
	cpu := cmp.Or(t.Resources.CPU, 2)
	return adapters.Template{ID: templateID(t.Name), Name: t.Name, Resources: adapters.Resources{
		CPU: cpu, MemoryMB: cmp.Or(t.Resources.MemoryMB, cpu*memoryPerCPU), DiskMB: t.Resources.DiskMB,
	}}
}

// image is what the vendor makes a template's boxes of.
func (p *place) image(t adapters.Template) (string, error) {
	for _, one := range p.config.Templates {
		if t.Name == one.Name || t.ID == templateID(one.Name) {
			return one.Image, nil
		}
	}
	if strings.HasPrefix(t.Name, registry+"/") {
		return t.Name, nil
	}
	return "", adapters.Errorf(adapters.KindNotFound, "there is no template %s in this pool", t.Name)
}

// templateID is the id of a name; it stays the same.
func templateID(name string) string {
	sum := sha256.Sum256([]byte("template " + name))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:20]
}
