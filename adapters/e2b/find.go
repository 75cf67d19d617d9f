package e2b

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// listed is a box as the server lists it.
type listed struct {
	SandboxID string            `json:"sandboxID"`
	StartedAt time.Time         `json:"startedAt"`
	State     string            `json:"state"`
	Metadata  map[string]string `json:"metadata"`
}

func (l listed) box() adapters.Box {
	return adapters.Box{
		ID: l.Metadata[metaID], Attempt: l.Metadata[metaAttempt], Deployment: l.Metadata[metaDeployment], SandboxID: l.Metadata[metaID],
		CreatedAt: l.StartedAt, Alive: true,
	}
}

// Get returns one box.
func (p *Provider) Get(ctx context.Context, boxID string) (adapters.Box, error) {
	found, err := p.look(ctx, boxID)
	if err != nil {
		return adapters.Box{}, err
	}
	box := found.box()
	if _, known := p.recall(boxID); known != nil && known.refused {
		box.Alive = false
	}
	return box, nil
}

// look asks the server for a box: by its own id when that is remembered, else by our metadata.
func (p *Provider) look(ctx context.Context, boxID string) (listed, error) {
	if inner, _ := p.recall(boxID); inner != "" {
		var found listed
		_, err := p.api.send(ctx, request{method: http.MethodGet, path: "/sandboxes/" + inner, into: &found})
		if adapters.KindOf(err) == adapters.KindNotFound && err != nil {
			p.forget(boxID)
			return listed{}, gone(boxID)
		}
		if err == nil {
			err = found.sound()
		}
		return found, err
	}
	if !boxIDs.MatchString(boxID) {
		return listed{}, gone(boxID)
	}
	all, err := p.list(ctx, metaID, boxID)
	if err != nil {
		return listed{}, err
	}
	if len(all) == 0 {
		return listed{}, gone(boxID)
	}
	p.remember(boxID, all[0].SandboxID, nil)
	return all[0], all[0].sound()
}

// List returns the boxes of one deployment.
func (p *Provider) List(ctx context.Context, deployment string) ([]adapters.Box, error) {
	all, err := p.list(ctx, metaDeployment, deployment)
	if err != nil {
		return nil, err
	}
	boxes := make([]adapters.Box, 0, len(all))
	for _, one := range all {
		if boxIDs.MatchString(one.Metadata[metaID]) {
			boxes = append(boxes, one.box())
		}
	}
	return boxes, nil
}

// list returns all boxes whose metadata has a value, page by page. What the server lists beside them, because
// it does not know filters, is left out.
func (p *Provider) list(ctx context.Context, key, value string) ([]listed, error) {
	var all []listed
	// The filter is a form within the query: encoded by itself, and once more with the query.
	query := url.Values{"metadata": {url.Values{key: {value}}.Encode()}, "limit": {"100"}}
	for {
		var page []listed
		more, err := p.api.send(ctx, request{method: http.MethodGet, path: "/v2/sandboxes", query: query, into: &page})
		if err != nil {
			return nil, err
		}
		if bare(page) { // that no box carries what is ours must not pass for proof that none is there
			return nil, misread(false, nil, "it lists sandboxes without metadata")
		}
		for _, one := range page {
			if one.Metadata[key] != value {
				continue
			}
			if one.SandboxID == "" {
				return nil, misread(false, nil, "it describes a sandbox without an id")
			}
			all = append(all, one)
		}
		if more == "" || more == query.Get("nextToken") {
			return all, nil
		}
		query.Set("nextToken", more)
	}
}

// innerOf returns the server's id of a box.
func (p *Provider) innerOf(ctx context.Context, boxID string) (string, error) {
	if inner, _ := p.recall(boxID); inner != "" {
		return inner, nil
	}
	found, err := p.look(ctx, boxID)
	return found.SandboxID, err
}

// Destroy ends a box; when a lost answer has made several of one id, all of them.
func (p *Provider) Destroy(ctx context.Context, boxID string) error {
	if !boxIDs.MatchString(boxID) {
		return nil
	}
	inners, err := p.all(ctx, boxID)
	if err != nil {
		return err
	}
	for _, inner := range inners {
		_, err := p.api.send(ctx, request{method: http.MethodDelete, path: "/sandboxes/" + inner})
		if err != nil && adapters.KindOf(err) != adapters.KindNotFound {
			return err
		}
	}
	p.forget(boxID)
	return nil
}

func (p *Provider) all(ctx context.Context, boxID string) ([]string, error) {
	if inner, access := p.recall(boxID); inner != "" && access != nil {
		return []string{inner}, nil // its create was answered: there is no other
	}
	found, err := p.list(ctx, metaID, boxID)
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(found))
	for _, one := range found {
		ids = append(ids, one.SandboxID)
	}
	return ids, nil
}
