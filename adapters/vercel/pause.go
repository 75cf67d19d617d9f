package vercel

import (
	"context"
	"net/http"
	"net/url"

	"github.com/isthmus/isthmus/adapters"
)

// change is the body of a change of a sandbox. What is nil stays.
type change struct {
	Persistent      *bool             `json:"persistent,omitempty"`
	Timeout         int64             `json:"timeout,omitempty"`
	NetworkPolicy   *policy           `json:"networkPolicy,omitempty"`
	Tags            map[string]string `json:"tags,omitempty"`
	SnapshotExpires *int64            `json:"snapshotExpiration,omitempty"`
}

// keeping says whether the vendor keeps the files when a session ends. What is kept then is kept for ever: the
// vendor's own default is a week.
func keeping(yes bool) change {
	var never int64
	return change{Persistent: &yes, SnapshotExpires: &never}
}

func (p *place) change(ctx context.Context, name string, c change) error {
	return p.api.send(ctx, request{method: http.MethodPatch, path: "/v2/sandboxes/" + url.PathEscape(name), query: p.inProject(), body: c})
}

// Pause stops the box and keeps its files. A box is persistent from here to its resume, and at no other time.
func (p *place) Pause(ctx context.Context, boxID string, level adapters.Level) error {
	if level != adapters.LevelFilesystem {
		return adapters.Errorf(adapters.KindUnsupported, "Vercel keeps the files of a paused sandbox and not its memory: pause without memory")
	}
	v, err := p.look(ctx, boxID)
	switch {
	case err != nil:
		return err
	case v.Sandbox.paused():
		return nil
	case v.Sandbox.over():
		return gone(boxID)
	}
	if err := p.change(ctx, boxID, keeping(true)); err != nil {
		return err
	}
	p.deadlines.drop(boxID)
	if err := p.stop(ctx, v.Session.ID); err != nil {
		return err
	}
	p.forget(boxID)
	v, err = p.look(ctx, boxID)
	if err == nil && v.Sandbox.strange() {
		return strangeStatus(adapters.KindUnknownOutcome, v.Sandbox)
	}
	if err == nil && !v.Sandbox.paused() {
		return adapters.Errorf(adapters.KindUnknownOutcome, "Vercel was told to stop the sandbox %s, which is %s", boxID, v.Sandbox.Status)
	}
	return err
}

// Resume boots a paused box again. It returns when programs can be started in it.
func (p *place) Resume(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	v, err := p.look(ctx, spec.BoxID)
	switch {
	case err != nil:
		return adapters.Box{}, err
	case v.Sandbox.over():
		return adapters.Box{}, gone(spec.BoxID)
	case v.Sandbox.strange():
		return adapters.Box{}, strangeStatus(adapters.KindUnavailable, v.Sandbox)
	case v.Sandbox.paused():
		if v, err = p.wake(ctx, spec); err != nil {
			return adapters.Box{}, err
		}
	}
	if err := p.change(ctx, spec.BoxID, keeping(false)); err != nil {
		return adapters.Box{}, err
	}
	p.remember(spec.BoxID, v)
	p.deadlines.set(spec.BoxID, spec.Envd.Deadline)
	v.Sandbox.Persistent = false
	return v.Sandbox.box(), nil
}

// wake boots a stopped box. This is the one place that says resume=true.
func (p *place) wake(ctx context.Context, spec adapters.Spec) (view, error) {
	policy, err := policyOf(spec.Network)
	if err != nil {
		return view{}, err
	}
	next := change{Timeout: p.life(spec.Envd.Deadline).Milliseconds(), NetworkPolicy: &policy}
	if err := p.change(ctx, spec.BoxID, next); err != nil {
		return view{}, err
	}
	query := p.inProject()
	query.Set("resume", "true")
	var v view
	err = p.settled(ctx, func() error {
		return p.api.send(ctx, request{method: http.MethodGet, path: "/v2/sandboxes/" + spec.BoxID, query: query, into: &v, makes: true})
	})
	switch {
	case err != nil:
		return v, err
	case v.Session.ID == "":
		return v, vendor.Misread(true, nil, "it describes a running sandbox without its session")
	case v.Sandbox.strange():
		return v, strangeStatus(adapters.KindUnknownOutcome, v.Sandbox)
	}
	return v, nil
}
