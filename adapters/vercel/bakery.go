package vercel

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
)

// bakery makes boxes of images that have envd in them already: snapshots of sandboxes of the same images, one for each
// image and version of envd, kept by stopped sandboxes of names that follow from both. Every Isthmus of the project uses
// them. What nobody uses any more ends by itself.
type bakery struct {
	place *place
	jobs  chan job

	mu     sync.Mutex
	ready  map[string]string    // the snapshots, by the names of what keeps them
	looked map[string]time.Time // when one was last looked for in vain
	queued map[string]bool
}

// job is something to bake.
type job struct {
	name, image string
	// stale says that what is there cannot be used any more.
	stale bool
}

const (
	// bakedLife is how long a snapshot is kept that was baked, bakeTime how long baking may take.
	bakedLife = 30 * 24 * time.Hour
	bakeTime  = 10 * time.Minute
	// lookAgain is how often a baked snapshot is looked for that was not there.
	lookAgain = 30 * time.Second
	// done is the tag's value once everything is in place.
	bakedDone, bakedNot = "done", "no"
)

func newBakery(p *place) *bakery {
	return &bakery{place: p, jobs: make(chan job, 16), ready: map[string]string{}, looked: map[string]time.Time{}, queued: map[string]bool{}}
}

// bakedName is the name of what keeps envd's snapshot of an image.
func bakedName(image string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{image, envd.Version, preparation, envdPath}, "\x00")))
	return "isthmusbaked" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:20]
}

// source puts the baked snapshot into a create, when there is one.
func (b *bakery) source(ctx context.Context, spec adapters.Spec, body *newSandbox) bool {
	if b.place.config.NoBake || spec.Template.Snapshot != "" {
		return false
	}
	id := b.find(ctx, bakedName(body.Image))
	if id == "" {
		return false
	}
	body.Source, body.Image = &source{"snapshot", id}, ""
	return true
}

// find returns a baked snapshot; empty: there is none, or nobody can tell.
func (b *bakery) find(ctx context.Context, name string) string {
	b.mu.Lock()
	id, looked := b.ready[name], b.looked[name]
	if id == "" && time.Since(looked) >= lookAgain {
		b.looked[name] = time.Now()
		looked = time.Time{}
	}
	b.mu.Unlock()
	if id != "" || !looked.IsZero() {
		return id
	}
	v, err := b.place.lookUp(ctx, name)
	if err != nil || !v.Sandbox.baked() {
		return ""
	}
	b.found(name, v.Sandbox.Snapshot)
	return v.Sandbox.Snapshot
}

func (s sandbox) baked() bool { return s.paused() && s.Snapshot != "" && s.Tags[tagBaked] == bakedDone }

func (b *bakery) found(name, id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready[name] = id
}

// wanted has a snapshot baked in the background, after a create that had to upload envd.
func (b *bakery) wanted(body newSandbox) {
	b.queue(job{name: bakedName(body.Image), image: body.Image})
}

// missing says that the snapshot of an image is not there any more.
func (b *bakery) missing(image string) {
	name := bakedName(image)
	b.mu.Lock()
	delete(b.ready, name)
	b.mu.Unlock()
	b.queue(job{name: name, image: image, stale: true})
}

func (b *bakery) queue(j job) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.place.config.NoBake || b.queued[j.name] {
		return
	}
	select {
	case b.jobs <- j:
		b.queued[j.name] = true
	default: // the next create asks again
	}
}

// run bakes what is wanted, one at a time.
func (b *bakery) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case j := <-b.jobs:
			if err := b.bake(ctx, j); err != nil && ctx.Err() == nil {
				b.place.log.Warn("envd could not be baked into a snapshot: creates go on uploading it", "image", j.image, "err", err)
			}
			b.mu.Lock()
			delete(b.queued, j.name)
			b.mu.Unlock()
		}
	}
}

// bake makes one snapshot, unless it is there or somebody else makes it.
func (b *bakery) bake(ctx context.Context, j job) error {
	ctx, cancel := context.WithTimeout(ctx, bakeTime)
	defer cancel()
	v, err := b.place.lookUp(ctx, j.name)
	switch {
	case isGone(err):
	case err != nil:
		return err
	case v.Sandbox.baked() && !j.stale:
		b.found(j.name, v.Sandbox.Snapshot)
		return nil
	case time.Since(time.UnixMilli(v.Sandbox.UpdatedAt)) < bakeTime && !v.Sandbox.baked() && !v.Sandbox.over():
		return nil
	default:
		if err := b.place.remove(ctx, j.name); err != nil {
			return err
		}
	}
	id, err := b.fresh(ctx, j)
	b.place.forget(j.name)
	if err != nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
		defer cancel()
		return errors.Join(err, b.place.remove(clean, j.name))
	}
	b.found(j.name, id)
	return nil
}

// fresh makes a sandbox of the image, puts envd in, and stops it.
func (b *bakery) fresh(ctx context.Context, j job) (string, error) {
	p, life := b.place, bakedLife.Milliseconds()
	var v view
	err := p.api.send(ctx, request{method: http.MethodPost, path: "/v3/sandboxes", into: &v, body: newSandbox{
		ProjectID: p.config.Project, Name: j.name, Image: j.image, Ports: []int{}, Timeout: bakeTime.Milliseconds(), Resources: resources{1},
		Persistent: true, SnapshotExpires: &life, NetworkPolicy: &policy{Mode: "deny-all"}, Region: p.config.Region,
		Tags: map[string]string{tagBaked: bakedNot},
	}})
	if err != nil {
		return "", err
	}
	p.remember(j.name, v)
	if err := p.prepare(ctx, j.name); err != nil {
		return "", err
	}
	program, err := p.config.Envd()
	if err != nil {
		return "", err
	}
	defer func() { _ = program.Close() }()
	if err := p.Put(ctx, j.name, envdPath, 0o755, program); err != nil {
		return "", err
	}
	if err := p.shell(ctx, j.name, `test "$("$1" version)" = "$2"`, envdPath, envd.Version); err != nil {
		return "", fmt.Errorf("envd does not run in a sandbox of the image: %w", err)
	}
	if err := p.change(ctx, j.name, change{Tags: map[string]string{tagBaked: bakedDone}}); err != nil {
		return "", err
	}
	if err := p.stop(ctx, v.Session.ID); err != nil {
		return "", err
	}
	if v, err = p.lookUp(ctx, j.name); err == nil && !v.Sandbox.baked() {
		err = errors.New("the sandbox was stopped and kept nothing")
	}
	return v.Sandbox.Snapshot, err
}
