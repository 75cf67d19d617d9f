package vercel

import (
	"context"
	"net/http"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// The vendor's snapshots have neither names nor tags. So a copy is kept by a sandbox of its own, the holder, which has
// both: it was made of the snapshot, stopped at once, and its files are the copy.

// holderLife bounds the life of a holder that nobody stops.
const holderLife = 5 * time.Minute

// Snapshot copies the box. The vendor stops the box for it, which is then booted again.
func (p *place) Snapshot(ctx context.Context, spec adapters.Spec, name string) (adapters.Snapshot, error) {
	if !boxIDs.MatchString(name) {
		return adapters.Snapshot{}, adapters.Errorf(adapters.KindInvalid, "a copy's name has 1 to 40 characters of a-z and 0-9")
	}
	switch holder, err := p.holder(ctx, name, spec.Deployment); {
	case err == nil:
		// The box may still be stopped: an earlier try ended between the two.
		_, err := p.Resume(ctx, spec)
		return holder, err
	case !isGone(err):
		return adapters.Snapshot{}, err
	}
	taken, err := p.take(ctx, spec.BoxID)
	if err != nil {
		return adapters.Snapshot{}, err
	}
	if _, err := p.Resume(ctx, spec); err != nil {
		return adapters.Snapshot{}, err
	}
	var never int64
	var v view
	err = p.api.send(ctx, request{method: http.MethodPost, path: "/v3/sandboxes", into: &v, makes: true, body: newSandbox{
		ProjectID: p.config.Project, Name: name, Source: &source{"snapshot", taken}, Ports: []int{}, Timeout: holderLife.Milliseconds(),
		Resources: resources{1}, Persistent: true, SnapshotExpires: &never, NetworkPolicy: &policy{Mode: "deny-all"}, Region: p.config.Region,
		Tags: map[string]string{tagSnapshot: spec.Deployment},
	}})
	if err != nil && adapters.KindOf(err) != adapters.KindInvalid { // a taken name: somebody else's try
		return adapters.Snapshot{}, err
	}
	return p.holder(ctx, name, spec.Deployment)
}

// take makes a snapshot of a box, which stops it. A box that is stopped was copied before.
func (p *place) take(ctx context.Context, boxID string) (string, error) {
	v, err := p.look(ctx, boxID)
	switch {
	case err != nil:
		return "", err
	case v.Sandbox.over():
		return "", gone(boxID)
	case v.Sandbox.paused() && v.Sandbox.Snapshot != "":
		return v.Sandbox.Snapshot, nil
	}
	if err := p.change(ctx, boxID, keeping(true)); err != nil {
		return "", err
	}
	p.deadlines.drop(boxID)
	var answer struct {
		Snapshot struct {
			ID string `json:"id"`
		} `json:"snapshot"`
	}
	err = p.api.send(ctx, request{
		method: http.MethodPost, path: "/v3/sandboxes/sessions/" + v.Session.ID + "/snapshot", body: map[string]int64{"expiration": 0},
		into: &answer, makes: true,
	})
	if err == nil && answer.Snapshot.ID == "" {
		err = vendor.Misread(true, nil, "it does not say which snapshot was made")
	}
	return answer.Snapshot.ID, err
}

// holder finds the copy of a name, and stops its sandbox when that still runs.
func (p *place) holder(ctx context.Context, name, deployment string) (adapters.Snapshot, error) {
	v, err := p.lookUp(ctx, name)
	switch {
	case err != nil:
		return adapters.Snapshot{}, err
	case v.Sandbox.Tags[tagSnapshot] != deployment:
		return adapters.Snapshot{}, adapters.Errorf(adapters.KindExists, "there is a sandbox %s that is no copy of this Isthmus", name)
	case v.Sandbox.over():
		return adapters.Snapshot{}, adapters.Errorf(adapters.KindUnavailable, "the copy %s could not be made: remove it and try again", name)
	case !v.Sandbox.paused():
		if err := p.stop(ctx, v.Session.ID); err != nil {
			return adapters.Snapshot{}, err
		}
		if v, err = p.lookUp(ctx, name); err != nil {
			return adapters.Snapshot{}, err
		}
	}
	made := v.Sandbox.copied()
	if !made.Ready {
		return adapters.Snapshot{}, adapters.Errorf(adapters.KindUnknownOutcome, "Vercel has not said yet that the copy %s is made", name)
	}
	return made, nil
}

// copied is the copy that a holder keeps. It is whole once the holder has stopped and left a snapshot of its own.
func (s sandbox) copied() adapters.Snapshot {
	return adapters.Snapshot{
		Name: s.Name, Ref: s.Snapshot, Deployment: s.Tags[tagSnapshot], Level: adapters.LevelFilesystem, CreatedAt: time.UnixMilli(s.CreatedAt).UTC(),
		Ready: s.paused() && s.Snapshot != "",
	}
}

// Snapshots returns the copies of one deployment, those too that are being made.
func (p *place) Snapshots(ctx context.Context, deployment string) ([]adapters.Snapshot, error) {
	all, err := p.tagged(ctx, tagSnapshot, deployment)
	if err != nil {
		return nil, err
	}
	copies := make([]adapters.Snapshot, 0, len(all))
	for _, one := range all {
		copies = append(copies, one.copied())
	}
	return copies, nil
}

// Forget removes a copy. Boxes that were made of it have files of their own.
func (p *place) Forget(ctx context.Context, snapshot adapters.Snapshot) error {
	if !boxIDs.MatchString(snapshot.Name) {
		return nil
	}
	v, err := p.lookUp(ctx, snapshot.Name)
	switch {
	case isGone(err):
		return nil
	case err != nil:
		return err
	case v.Sandbox.Tags == nil:
		return vendor.Unread(adapters.KindUnavailable, nil, "it describes a sandbox of our name without tags")
	case v.Sandbox.Tags[tagSnapshot] == "" || v.Sandbox.Tags[tagSnapshot] != snapshot.Deployment:
		return nil // somebody else's
	}
	return p.remove(ctx, snapshot.Name)
}
