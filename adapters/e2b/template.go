package e2b

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"net/http"
	"net/url"
	"strings"

	"github.com/isthmus/isthmus/adapters"
)

// Resolve finds a template by a configured name or its id, else on the server by its alias.
func (p *Provider) Resolve(ctx context.Context, name string) (adapters.Template, error) {
	names := make([]string, 0, len(p.config.Templates))
	for _, t := range p.config.Templates {
		if name == t.Name || name == templateID(t.Name) {
			return adapters.Template{ID: templateID(t.Name), Name: t.Name, Resources: sized(t.Resources)}, nil
		}
		names = append(names, t.Name)
	}
	var found struct {
		TemplateID string `json:"templateID"`
	}
	_, err := p.api.send(ctx, request{method: http.MethodGet, path: "/templates/aliases/" + url.PathEscape(name), into: &found})
	switch kind := adapters.KindOf(err); {
	case err == nil && found.TemplateID != "":
		return adapters.Template{ID: found.TemplateID, Name: name, Resources: sized(adapters.Resources{})}, nil
	case err == nil, kind == adapters.KindNotFound, kind == adapters.KindUnsupported, kind == adapters.KindInvalid, kind == adapters.KindCredentials && len(names) > 0:
		return adapters.Template{}, adapters.Wrap(adapters.KindNotFound, err,
			"there is no template "+name+" in this pool: "+cmp.Or(strings.Join(names, ", "), "none is configured"))
	}
	return adapters.Template{}, err
}

// innerTemplate is what the server calls a template.
func (p *Provider) innerTemplate(t adapters.Template) string {
	for _, one := range p.config.Templates {
		if one.Name == t.Name {
			return cmp.Or(one.Inner, one.Name)
		}
	}
	return cmp.Or(t.ID, t.Name)
}

// templateID is the id of a configured name; it stays the same.
func templateID(name string) string {
	sum := sha256.Sum256([]byte("template " + name))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:20]
}

func sized(r adapters.Resources) adapters.Resources {
	return adapters.Resources{CPU: cmp.Or(r.CPU, 2), MemoryMB: cmp.Or(r.MemoryMB, 1024), DiskMB: cmp.Or(r.DiskMB, 10*1024)}
}
