package vercel

import (
	"context"
	"net/http"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// newSandbox is the body of a create. The vendor keeps every sandbox's files when nothing is said, and bills them.
type newSandbox struct {
	ProjectID       string            `json:"projectId"`
	Name            string            `json:"name"`
	Image           string            `json:"image,omitempty"`
	Source          *source           `json:"source,omitempty"`
	Ports           []int             `json:"ports"`
	Timeout         int64             `json:"timeout"` // milliseconds
	Resources       resources         `json:"resources"`
	Persistent      bool              `json:"persistent"`
	NetworkPolicy   *policy           `json:"networkPolicy,omitempty"`
	Tags            map[string]string `json:"tags"`
	Region          string            `json:"region,omitempty"`
	SnapshotExpires *int64            `json:"snapshotExpiration,omitempty"` // milliseconds; 0: never
}

type source struct {
	Type       string `json:"type"`
	SnapshotID string `json:"snapshotId"`
}

type resources struct {
	VCPUs int `json:"vcpus"`
}

const (
	// slack is how far past our deadline the vendor's lies.
	slack = 30 * time.Second
	// minLife is the shortest life that the vendor gives.
	minLife = time.Second
)

// Create makes a box and returns when programs can be started in it: the vendor answers then.
func (p *place) Create(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	body, err := p.body(spec)
	if err != nil {
		return adapters.Box{}, err
	}
	baked := p.bakery.source(ctx, spec, &body)
	v, err := p.make(ctx, spec, body)
	if baked && coded(err, codeSnapshotMissing) {
		// The vendor says that nothing was made: the copy has expired.
		body, _ = p.body(spec)
		p.bakery.missing(body.Image)
		baked = false
		v, err = p.make(ctx, spec, body)
	}
	if err != nil {
		return adapters.Box{}, err
	}
	p.remember(spec.BoxID, v)
	p.deadlines.set(spec.BoxID, spec.Envd.Deadline)
	if !baked && spec.Template.Snapshot == "" {
		if err := p.prepare(ctx, spec.BoxID); err != nil {
			return adapters.Box{}, p.undo(ctx, spec.BoxID, err)
		}
		p.bakery.wanted(body)
	}
	return v.Sandbox.box(), nil
}

// make sends a create, once. A taken name is answered with 400, as is a body that is wrong, and an answer may be lost
// on the way: a look tells, and finds the sandbox when it is that of this very attempt.
func (p *place) make(ctx context.Context, spec adapters.Spec, body newSandbox) (view, error) {
	var v view
	err := p.api.send(ctx, request{method: http.MethodPost, path: "/v3/sandboxes", body: body, into: &v, makes: true})
	switch kind := adapters.KindOf(err); {
	case err == nil && v.Sandbox.Name == spec.BoxID && v.Session.ID != "":
		return v, nil
	case err == nil:
		err = vendor.Misread(true, nil, "it does not say which sandbox was made")
	case ctx.Err() != nil, coded(err, codeTimeout), kind != adapters.KindInvalid && kind != adapters.KindUnknownOutcome:
		return view{}, err
	}
	return p.adopt(ctx, spec, err)
}

// adopt finds what a create has made that ended with an error which does not say so.
func (p *place) adopt(ctx context.Context, spec adapters.Spec, cause error) (view, error) {
	var there view
	lookErr := p.settled(ctx, func() (err error) {
		if there, err = p.look(ctx, spec.BoxID); err == nil && there.Sandbox.Status == statusPending {
			err = &apiError{status: http.StatusUnprocessableEntity, code: codeStopping, message: "the sandbox is being made"}
		}
		return err
	})
	switch {
	case ctx.Err() != nil:
		return view{}, ctx.Err()
	case isGone(lookErr):
		return view{}, cause
	case lookErr != nil:
		return view{}, adapters.Wrap(adapters.KindUnknownOutcome, lookErr, "it is not known whether Vercel made the sandbox, and it could not be looked up")
	case there.Sandbox.Tags[tagAttempt] == spec.Attempt && spec.Attempt != "" && !there.Sandbox.over():
		adapters.Overcome(ctx, cause)
		return there, nil
	}
	return view{}, adapters.Wrap(adapters.KindExists, cause, "a sandbox with the id "+spec.BoxID+" is there already")
}

// undo removes a box that cannot be used, so that the error may promise that nothing is left.
func (p *place) undo(ctx context.Context, boxID string, cause error) error {
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	if err := p.Destroy(clean, boxID); err != nil {
		return adapters.Wrap(adapters.KindUnknownOutcome, err, "the sandbox cannot be used and could not be removed yet")
	}
	return cause
}

const undoTime = 30 * time.Second

// body is the create of a box, of its template's image or of a snapshot.
func (p *place) body(spec adapters.Spec) (newSandbox, error) {
	if !boxIDs.MatchString(spec.BoxID) {
		return newSandbox{}, adapters.Errorf(adapters.KindInvalid, "a box id has 1 to 40 characters of a-z and 0-9")
	}
	cpu, err := p.cpus(spec.Resources)
	if err != nil {
		return newSandbox{}, err
	}
	policy, err := policyOf(spec.Network)
	if err != nil {
		return newSandbox{}, err
	}
	body := newSandbox{
		ProjectID: p.config.Project, Name: spec.BoxID, Ports: []int{port}, Timeout: p.life(spec.Envd.Deadline).Milliseconds(),
		Resources: resources{cpu}, NetworkPolicy: &policy, Region: p.config.Region,
		Tags: map[string]string{tagDeployment: spec.Deployment, tagAttempt: spec.Attempt},
	}
	if spec.Template.Snapshot != "" {
		body.Source = &source{"snapshot", spec.Template.Snapshot}
		return body, nil
	}
	body.Image, err = p.image(spec.Template)
	return body, err
}

// cpus is how many vCPUs a size needs: memory comes with them.
func (p *place) cpus(r adapters.Resources) (int, error) {
	cpu := max(1, r.CPU, (r.MemoryMB+memoryPerCPU-1)/memoryPerCPU)
	if cpu > p.plan.MaxCPU {
		return 0, adapters.Errorf(adapters.KindUnsupported, "Vercel gives a sandbox of the plan %s at most %d CPUs and %d MiB of memory",
			p.plan.Name, p.plan.MaxCPU, p.plan.MaxCPU*memoryPerCPU)
	}
	return cpu, nil
}

// life is how long from now the vendor lets a box live: past our deadline, which rules, and never longer than it can.
func (p *place) life(deadline time.Time) time.Duration {
	if deadline.IsZero() {
		return p.plan.MaxLife
	}
	return min(p.plan.MaxLife, max(minLife, time.Until(deadline)+slack))
}
