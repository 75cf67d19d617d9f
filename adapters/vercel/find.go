package vercel

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// look asks for a sandbox of ours by its name. It never says resume=true: that boots a stopped one, and bills it.
func (p *place) look(ctx context.Context, name string) (view, error) {
	if !boxIDs.MatchString(name) {
		return view{}, gone(name)
	}
	v, err := p.lookUp(ctx, name)
	if err == nil {
		err = v.sound()
	}
	if err == nil && !v.Sandbox.ours() {
		return view{}, gone(name)
	}
	return v, err
}

// lookUp asks for any sandbox of the project by its name.
func (p *place) lookUp(ctx context.Context, name string) (view, error) {
	var v view
	err := p.api.send(ctx, request{method: http.MethodGet, path: "/v2/sandboxes/" + url.PathEscape(name), query: p.inProject(), into: &v})
	switch {
	case err == nil && v.Sandbox.Name == name:
		return v, nil
	case err == nil:
		return view{}, vendor.Unread(adapters.KindUnavailable, nil, "it is of another sandbox, or of none")
	case isGone(err):
		return view{}, adapters.Wrap(adapters.KindNotFound, err, "there is no sandbox "+name)
	}
	return view{}, err
}

func (p *place) inProject() url.Values { return url.Values{"projectId": {p.config.Project}} }

// living is look for a box that has not ended and is not paused.
func (p *place) living(ctx context.Context, boxID string) (view, error) {
	v, err := p.look(ctx, boxID)
	switch {
	case err != nil:
		return view{}, err
	case v.Sandbox.over():
		return view{}, adapters.Errorf(adapters.KindNotFound, "the sandbox %s has ended", boxID)
	case v.Sandbox.paused():
		return view{}, adapters.Errorf(adapters.KindPrecondition, "the sandbox %s is paused: resume it first", boxID)
	}
	return v, nil
}

// Get returns one box.
func (p *place) Get(ctx context.Context, boxID string) (adapters.Box, error) {
	v, err := p.look(ctx, boxID)
	if err != nil {
		if isGone(err) {
			p.forget(boxID)
		}
		return adapters.Box{}, err
	}
	return v.Sandbox.box(), nil
}

// List returns the boxes of one deployment.
func (p *place) List(ctx context.Context, deployment string) ([]adapters.Box, error) {
	all, err := p.tagged(ctx, tagDeployment, deployment)
	if err != nil {
		return nil, err
	}
	boxes := make([]adapters.Box, 0, len(all))
	for _, one := range all {
		if one.ours() {
			boxes = append(boxes, one.box())
		}
	}
	return boxes, nil
}

// tagged returns the sandboxes with a tag, page by page.
func (p *place) tagged(ctx context.Context, tag, value string) ([]sandbox, error) {
	var all []sandbox
	query := url.Values{"project": {p.config.Project}, "limit": {"100"}, "tags": {tag + ":" + value}}
	for {
		var page struct {
			Sandboxes  []sandbox `json:"sandboxes"`
			Pagination struct {
				Next *string `json:"next"`
			} `json:"pagination"`
		}
		if err := p.api.send(ctx, request{method: http.MethodGet, path: "/v2/sandboxes", query: query, into: &page}); err != nil {
			return nil, err
		}
		if page.Sandboxes == nil {
			return nil, vendor.Unread(adapters.KindUnavailable, nil, "it is a list without sandboxes")
		}
		for _, one := range page.Sandboxes {
			if one.Name == "" || one.Status == "" {
				return nil, vendor.Unread(adapters.KindUnavailable, nil, "it describes a sandbox without a name or a status")
			}
			if one.Tags[tag] == value { // what is listed beside them, because the filter changed, is left out
				all = append(all, one)
			}
		}
		next := page.Pagination.Next
		if next == nil || *next == "" || *next == query.Get("cursor") {
			return all, nil
		}
		query.Set("cursor", *next)
	}
}

// Destroy ends a box and removes what it kept.
func (p *place) Destroy(ctx context.Context, boxID string) error {
	if !boxIDs.MatchString(boxID) {
		return nil
	}
	v, err := p.look(ctx, boxID)
	if isGone(err) {
		p.forget(boxID)
		return nil
	}
	if err != nil {
		return err
	}
	err = p.remove(ctx, v.Sandbox.Name)
	if err == nil {
		p.forget(boxID)
	}
	return err
}

// settleTime bounds the wait for the vendor's own changes of state.
const settleTime = 60 * time.Second

// remove deletes a sandbox with the snapshots that nothing else needs. One that is gone is success.
func (p *place) remove(ctx context.Context, name string) error {
	query := p.inProject()
	query.Set("deleteOrphanSnapshots", "true")
	err := p.settled(ctx, func() error {
		return p.api.send(ctx, request{method: http.MethodDelete, path: "/v2/sandboxes/" + url.PathEscape(name), query: query})
	})
	if isGone(err) {
		return nil
	}
	return err
}

// settled makes a call until the vendor does not say any more that the sandbox is changing its state.
func (p *place) settled(ctx context.Context, call func() error) error {
	bounded, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := call()
		if !coded(err, codeStopping, codeSnapshotting) {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-bounded.Done():
			timer.Stop()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return err
		}
	}
}
