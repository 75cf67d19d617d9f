package daytona

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// newSandbox is the body of a create.
type newSandbox struct {
	Name               string            `json:"name"`
	Snapshot           string            `json:"snapshot,omitempty"`
	BuildInfo          *buildInfo        `json:"buildInfo,omitempty"`
	User               string            `json:"user"`
	Labels             map[string]string `json:"labels"`
	Target             string            `json:"target,omitempty"`
	CPU                int               `json:"cpu,omitempty"`
	Memory             int               `json:"memory,omitempty"`
	Disk               int               `json:"disk,omitempty"`
	AutoStopInterval   int               `json:"autoStopInterval"`
	AutoDeleteInterval *int              `json:"autoDeleteInterval,omitempty"`
	TTLMinutes         int               `json:"ttlMinutes,omitempty"`
	settings
}

// buildInfo names an image.
type buildInfo struct {
	DockerfileContent string `json:"dockerfileContent"`
}

// mib is how many MiB a GiB has.
const mib = 1024

// gib are sizes as Daytona counts, in whole GiB and rounded up.
type gib struct{ cpu, memory, disk int }

func sizesOf(r adapters.Resources) gib {
	return gib{max(r.CPU, 1), max((r.MemoryMB+mib-1)/mib, 1), max((r.DiskMB+mib-1)/mib, 1)}
}

// Create makes a sandbox and returns when programs can be started in it.
func (p *Provider) Create(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	body, err := p.check(spec)
	if err != nil {
		return adapters.Box{}, err
	}
	from, err := p.source(ctx, spec)
	if err != nil {
		return adapters.Box{}, err
	}
	made, err := p.post(ctx, spec, from.into(body))
	if adapters.KindOf(err) == adapters.KindNotFound && err != nil && from.baked {
		// The baked snapshot has been taken away, and nothing was made.
		p.unlearn(from.snapshot)
		if from, err = p.plain(ctx, spec); err != nil {
			return adapters.Box{}, err
		}
		made, err = p.post(ctx, spec, from.into(body))
	}
	if err != nil {
		return adapters.Box{}, err
	}
	p.learn(spec.BoxID, made)
	p.remember(spec.BoxID, func(k *known) { k.baked = from.baked })
	if made, err = p.awaken(ctx, spec, made, from); err != nil {
		return adapters.Box{}, err
	}
	p.keeper.set(spec.BoxID, spec.Envd.Deadline)
	return made.box(), nil
}

// check refuses what Daytona is known not to have, and begins the request.
func (p *Provider) check(spec adapters.Spec) (newSandbox, error) {
	most, r := p.config.Max, spec.Resources
	network, err := networkOf(spec.Network)
	switch {
	case !boxIDs.MatchString(spec.BoxID):
		return newSandbox{}, adapters.Errorf(adapters.KindInvalid, "a box id has 1 to 40 characters of a-z and 0-9")
	case err != nil:
		return newSandbox{}, err
	case r.CPU > most.CPU, r.MemoryMB > most.MemoryMB, r.DiskMB > most.DiskMB:
		return newSandbox{}, adapters.Errorf(adapters.KindUnsupported, "the pool has at most %d CPUs, %d MiB of memory and %d MiB of disk for a sandbox",
			most.CPU, most.MemoryMB, most.DiskMB)
	}
	return newSandbox{
		Name: spec.BoxID, User: "root", Target: p.config.Target, settings: network, TTLMinutes: minutesBetween(time.Now(), spec.Envd.Deadline),
		Labels: map[string]string{labelID: spec.BoxID, labelAttempt: spec.Attempt, labelDeployment: spec.Deployment},
	}, nil
}

// minutesBetween counts whole minutes, rounded up, at least 1; 0 without an end.
func minutesBetween(from, to time.Time) int {
	if to.IsZero() {
		return 0
	}
	return max(1, int(math.Ceil(to.Sub(from).Minutes())))
}

// post makes the row. When the name is held by a row that failed before, that goes first.
func (p *Provider) post(ctx context.Context, spec adapters.Spec, body newSandbox) (sandbox, error) {
	for first := true; ; first = false {
		var made sandbox
		err := p.api.send(ctx, request{method: http.MethodPost, path: "/sandbox", body: body, into: &made, makes: true})
		if err == nil && (made.ID == "" || made.Labels[labelID] != spec.BoxID) {
			err = vendor.Misread(true, nil, "it does not say which sandbox was made")
		}
		if !first || err == nil || adapters.KindOf(err) != adapters.KindExists {
			return made, err
		}
		holder, lookErr := p.read(ctx, spec.BoxID)
		if lookErr != nil || !holder.failed() || holder.Labels[labelID] != spec.BoxID {
			return sandbox{}, err
		}
		if removeErr := p.remove(ctx, holder.ID); removeErr != nil {
			return sandbox{}, err
		}
	}
}

// undoTime bounds the removal of a sandbox that did not come to life.
const undoTime = 30 * time.Second

// awaken waits until the sandbox has started, and gives it the sizes that its source did not.
func (p *Provider) awaken(ctx context.Context, spec adapters.Spec, made sandbox, from source) (sandbox, error) {
	var err error
	if !made.at(stateStarted) {
		made, err = p.until(ctx, made.ID, stateStarted)
	}
	if err == nil && made.SandboxClass != "" && made.SandboxClass != p.config.Class {
		err = adapters.Errorf(adapters.KindUnsupported, "Daytona made a sandbox of class %s where the pool has %s: correct its isolation, or its templates",
			made.SandboxClass, p.config.Class)
	}
	if err == nil {
		made, err = p.grow(ctx, made, sizesOf(spec.Resources), from)
	}
	if err == nil {
		return made, nil
	}
	if ctx.Err() != nil { // whoever looks for it finds it by its name
		if adapters.MisreadOf(err) != nil {
			return sandbox{}, err
		}
		return sandbox{}, ctx.Err()
	}
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	if left := p.Destroy(clean, spec.BoxID); left != nil {
		return sandbox{}, adapters.Wrap(adapters.KindUnknownOutcome, left, "the sandbox did not come to life and could not be removed yet")
	}
	if kind := adapters.KindOf(err); kind == adapters.KindNotFound || kind == adapters.KindInvalid {
		err = adapters.Wrap(adapters.KindUnavailable, err, "the sandbox was made but did not come to life: "+err.Error())
	}
	return sandbox{}, err
}

// grow gives a sandbox of a snapshot, which has sizes of its own, the larger ones that were asked for.
func (p *Provider) grow(ctx context.Context, made sandbox, want gib, from source) (sandbox, error) {
	if from.sized || made.CPU == 0 || want.cpu <= made.CPU && want.memory <= made.Memory {
		return made, nil
	}
	body := map[string]int{"cpu": max(want.cpu, made.CPU), "memory": max(want.memory, made.Memory)}
	err := p.api.insist(ctx, request{method: http.MethodPost, path: sandboxPath(made.ID, "resize"), body: body})
	if err != nil {
		return sandbox{}, err
	}
	return p.until(ctx, made.ID, stateStarted)
}

// source is what a sandbox is made of.
type source struct {
	snapshot, image string
	// baked says that it is of a snapshot of ours that has envd; copied that it is a copy of a box, which has it too.
	baked, copied bool
	// sized says that it has the sizes that were asked for.
	sized     bool
	sizes     gib
	ephemeral bool
}

// into completes the request.
func (s source) into(body newSandbox) newSandbox {
	body.Snapshot = s.snapshot
	if s.image != "" {
		body.BuildInfo = &buildInfo{"FROM " + s.image + "\n"}
		body.CPU, body.Memory, body.Disk = s.sizes.cpu, s.sizes.memory, s.sizes.disk
	}
	if s.ephemeral {
		atStop := 0
		body.AutoDeleteInterval = &atStop
	}
	return body
}

// source chooses what a box is made of: a copy when it is asked for, else the baked snapshot when there is one. When
// there is none it is baked in the background.
func (p *Provider) source(ctx context.Context, spec adapters.Spec) (source, error) {
	if copied := spec.Template.Snapshot; copied != "" {
		return source{snapshot: copied, copied: true}, nil
	}
	one, err := p.plain(ctx, spec)
	if err != nil || p.config.Envd == nil || one.ephemeral {
		return one, err
	}
	name := bakedName(spec.Template, one.sizes)
	said, err := p.snapshot(ctx, name)
	switch {
	case err == nil && said.State == snapshotActive:
		return source{snapshot: name, baked: true, sized: true, sizes: one.sizes}, nil
	case err == nil || adapters.KindOf(err) == adapters.KindNotFound:
		p.bakery.order(recipe{name: name, id: said.ID, state: said.State, from: one})
		return one, nil
	}
	return source{}, err
}

// plain is the source without envd.
func (p *Provider) plain(ctx context.Context, spec adapters.Spec) (source, error) {
	t, err := p.template(cmp.Or(spec.Template.Name, spec.Template.ID))
	if err != nil {
		return source{}, err
	}
	want := sizesOf(spec.Resources)
	if t.Image != "" {
		return source{image: t.Image, sized: true, sizes: want}, nil
	}
	said, err := p.snapshot(ctx, t.Snapshot)
	if err != nil {
		return source{}, err
	}
	if want.disk > said.Disk {
		return source{}, adapters.Errorf(adapters.KindUnsupported, "the snapshot %s has %d GiB of disk: use a larger one, or an image", t.Snapshot, said.Disk)
	}
	return source{snapshot: t.Snapshot, sizes: gib{max(want.cpu, said.CPU), max(want.memory, said.Memory), said.Disk}, ephemeral: said.GPU > 0}, nil
}
