package daytona

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// Get returns one box.
func (p *Provider) Get(ctx context.Context, boxID string) (adapters.Box, error) {
	found, err := p.present(ctx, boxID)
	if err != nil {
		return adapters.Box{}, err
	}
	return found.box(), nil
}

// List returns the boxes of one deployment.
func (p *Provider) List(ctx context.Context, deployment string) ([]adapters.Box, error) {
	all, err := p.listed(ctx, map[string]string{labelDeployment: deployment})
	if err != nil {
		return nil, err
	}
	boxes := make([]adapters.Box, 0, len(all))
	for _, one := range all {
		if boxIDs.MatchString(one.Labels[labelID]) && !one.leaving() {
			boxes = append(boxes, one.box())
		}
	}
	return boxes, nil
}

// listed returns all sandboxes with some labels, page by page. What the server lists beside them, because it does not
// know the filter, is left out.
func (p *Provider) listed(ctx context.Context, labels map[string]string) ([]sandbox, error) {
	filter, err := json.Marshal(labels)
	if err != nil {
		return nil, adapters.Wrap(adapters.KindInternal, err, "the filter of a list cannot be written")
	}
	var all []sandbox
	query := url.Values{"labels": {string(filter)}, "limit": {"100"}}
	for {
		var page struct {
			Items      []sandbox `json:"items"`
			NextCursor string    `json:"nextCursor"`
		}
		if err := p.api.send(ctx, request{method: http.MethodGet, path: "/sandbox", query: query, into: &page}); err != nil {
			return nil, unlisted(err)
		}
		if page.Items == nil {
			return nil, vendor.Unread(adapters.KindUnavailable, nil, "it is a list without items")
		}
		for _, one := range page.Items {
			if err := one.sound(); err != nil {
				return nil, err
			}
			if carries(one.Labels, labels) {
				all = append(all, one)
			}
		}
		if page.NextCursor == "" || page.NextCursor == query.Get("cursor") {
			return all, nil
		}
		query.Set("cursor", page.NextCursor)
	}
}

func carries(have, want map[string]string) bool {
	for key, value := range want {
		if have[key] != value {
			return false
		}
	}
	return true
}

// Destroy ends a box. A row that only failed goes too: it holds the name.
func (p *Provider) Destroy(ctx context.Context, boxID string) error {
	if !boxIDs.MatchString(boxID) {
		return nil
	}
	p.keeper.drop(boxID)
	found, err := p.look(ctx, boxID)
	if err == nil {
		err = p.remove(ctx, found.ID)
	}
	if err != nil && adapters.KindOf(err) != adapters.KindNotFound {
		return err
	}
	p.forget(boxID)
	return nil
}

// remove deletes a sandbox and returns when it is gone: until then its state may say anything.
func (p *Provider) remove(ctx context.Context, sandboxID string) error {
	err := p.api.insist(ctx, request{method: http.MethodDelete, path: sandboxPath(sandboxID)})
	if adapters.KindOf(err) == adapters.KindNotFound && err != nil {
		return nil
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	var last looked
	for pause := time.Duration(0); ; {
		found, err := p.read(ctx, sandboxID)
		last.note(ctx, found.State, err)
		switch {
		case err != nil && adapters.KindOf(err) == adapters.KindNotFound, err == nil && found.State == stateDestroyed:
			return nil
		case err == nil && found.broken() && !found.leaving():
			return adapters.Errorf(adapters.KindUnavailable, "the sandbox could not be removed: it is in the state %s", found.State)
		case err != nil && adapters.KindOf(err) != adapters.KindUnavailable && adapters.KindOf(err) != adapters.KindRateLimited:
			return err
		}
		if stopped := wait(ctx, &pause); stopped != nil {
			return last.givenUp(stopped, stateDestroyed, states())
		}
	}
}
