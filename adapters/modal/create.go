package modal

import (
	"context"
	"strings"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"

	"github.com/isthmus/isthmus/adapters"
)

// The tags by which our boxes are known. A box that is only there to be made an image of has tagPurpose alone.
const (
	tagID         = "isthmus-id"
	tagAttempt    = "isthmus-attempt"
	tagDeployment = "isthmus-deployment"
	tagPurpose    = "isthmus-purpose"
	tagRules      = "isthmus-rules" // it was made with an outbound policy
)

// firstProgram is what runs in a box from its start: it ends, and the box with it, when envd says so.
const firstProgram = `mkdir -p -m 700 "${1%/*}"; [ -p "$1" ] || { rm -f "$1"; mkfifo -m 600 "$1"; }; read -r said <"$1" || true`

// Create makes a sandbox and returns when programs can be started in it.
func (p *Provider) Create(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	definition, err := p.definition(spec)
	if err != nil {
		return adapters.Box{}, err
	}
	app, err := p.appID(ctx)
	if err != nil {
		return adapters.Box{}, err
	}
	one, err := p.createOf(ctx, app, definition, spec)
	if err != nil {
		return adapters.Box{}, err
	}
	return one.box(spec.BoxID), nil
}

// createOf makes the sandbox of the template's image. An image with envd in it that Modal has no more is no reason to
// fail: the sandbox is then made of the plain one, and the other is baked again.
func (p *Provider) createOf(ctx context.Context, app string, definition *pb.Sandbox, spec adapters.Spec) (*known, error) {
	image, err := p.image(ctx, spec.Template)
	if err != nil {
		return nil, err
	}
	definition.SetImageId(image)
	one, err := p.place(ctx, app, definition, spec)
	if adapters.KindOf(err) != adapters.KindNotFound || spec.Template.Snapshot != "" {
		return one, err
	}
	p.forgetImages(spec.Template.Name, app)
	if app, err = p.appID(ctx); err != nil {
		return nil, err
	}
	if image, err = p.image(ctx, spec.Template); err != nil {
		return nil, err
	}
	definition.SetImageId(image)
	one, err = p.place(ctx, app, definition, spec)
	if adapters.KindOf(err) == adapters.KindNotFound {
		return nil, adapters.Wrap(adapters.KindUnavailable, err, "Modal does not have what the sandbox is made of: "+err.Error())
	}
	return one, err
}

// forgetImages forgets what Modal may not have any more.
func (p *Provider) forgetImages(template, app string) {
	p.mu.Lock()
	if p.app == app {
		p.app = ""
	}
	delete(p.images, template)
	_, was := p.baked[template]
	delete(p.baked, template)
	p.mu.Unlock()
	if t, err := p.template(template); err == nil && was {
		p.bakeLater(t)
	}
}

// place makes a sandbox, and when the answer is lost finds out by the name what became of it.
func (p *Provider) place(ctx context.Context, app string, definition *pb.Sandbox, spec adapters.Spec) (*known, error) {
	carried := map[string]string{tagID: spec.BoxID, tagAttempt: spec.Attempt, tagDeployment: spec.Deployment}
	if definition.HasExperimentalOutboundPolicy() {
		carried[tagRules] = "yes"
	}
	tags := tagsOf(carried)
	var one *known
	var err error
	if definition.GetResources().GetGpuConfig() != nil {
		one, err = p.placeFirst(ctx, app, definition, tags)
	} else {
		one, err = p.placeSecond(ctx, app, definition, tags)
	}
	if adapters.KindOf(err) == adapters.KindUnknownOutcome {
		one, err = p.settle(ctx, spec, err)
	}
	if err != nil {
		return nil, err
	}
	one.attempt, one.deployment, one.ruled = spec.Attempt, spec.Deployment, definition.HasExperimentalOutboundPolicy()
	p.remember(spec.BoxID, one)
	return one, nil
}

// placeSecond makes a sandbox of the second version: Modal answers when it is placed.
func (p *Provider) placeSecond(ctx context.Context, app string, definition *pb.Sandbox, tags []*pb.SandboxTag) (*known, error) {
	var answer *pb.SandboxCreateV2Response
	err := p.control.make(ctx, func(ctx context.Context) (err error) {
		answer, err = p.control.stub.SandboxCreateV2(ctx, pb.SandboxCreateV2Request_builder{AppId: app, Definition: definition, Tags: tags}.Build())
		return err
	})
	if err != nil {
		return nil, err
	}
	one := &known{id: answer.GetSandboxId(), task: answer.GetTaskId(), created: time.Now().UTC()}
	one.learnTunnels(answer.GetTunnels())
	if access := answer.GetCommandRouterAccess(); access.GetUrl() != "" {
		one.access = &routerAccess{access.GetUrl(), access.GetJwt()}
	}
	if one.id == "" || one.task == "" {
		return nil, vendor.Unread(adapters.KindUnknownOutcome, nil, "a sandbox was made and it does not say which")
	}
	return one, nil
}

// settle finds a sandbox whose create gave no answer. It is ours if it carries our attempt.
func (p *Provider) settle(ctx context.Context, spec adapters.Spec, cause error) (*known, error) {
	p.log.Warn("create: Modal gave no answer, looking the sandbox up by its name", "box", spec.BoxID, "err", cause)
	one, err := p.find(ctx, spec.BoxID, true)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case adapters.KindOf(err) == adapters.KindNotFound:
		return nil, cause // it may still come
	case err != nil:
		return nil, adapters.Wrap(adapters.KindUnknownOutcome, err, "Modal gave no answer to a create, and none to the question what became of it")
	case one.attempt != spec.Attempt:
		return nil, adapters.Errorf(adapters.KindExists, "Modal has a sandbox %s of another attempt", spec.BoxID)
	case one.ended != "":
		return nil, adapters.Wrap(adapters.KindUnavailable, cause, "the sandbox was made and has ended: "+one.ended)
	}
	adapters.Overcome(ctx, cause)
	return one, nil
}

// definition is what is asked for.
func (p *Provider) definition(spec adapters.Spec) (*pb.Sandbox, error) {
	most, r := p.config.Max, spec.Resources
	switch {
	case !boxIDs.MatchString(spec.BoxID):
		return nil, adapters.Errorf(adapters.KindInvalid, "a box id has 1 to 40 characters of a-z and 0-9")
	case most.CPU > 0 && r.CPU > most.CPU, most.MemoryMB > 0 && r.MemoryMB > most.MemoryMB, most.DiskMB > 0 && r.DiskMB > most.DiskMB:
		return nil, adapters.Errorf(adapters.KindUnsupported, "the pool has at most %d CPUs, %d MiB of memory and %d MiB of disk for a sandbox",
			most.CPU, most.MemoryMB, most.DiskMB)
	}
	if _, err := p.template(spec.Template.Name); err != nil && spec.Template.Snapshot == "" {
		return nil, err
	}
	access, err := networkAccess(spec.Network)
	if err != nil {
		return nil, err
	}
	policy, err := outboundPolicy(spec.Network, access)
	if err != nil {
		return nil, err
	}
	gpu, err := p.gpu(spec.GPU)
	if err != nil {
		return nil, err
	}
	name := spec.BoxID
	definition := pb.Sandbox_builder{
		EntrypointArgs: []string{"/bin/sh", "-c", firstProgram, "isthmus", EndPipe}, Name: &name,
		TimeoutSecs: uint32(p.config.MaxLife / time.Second), NetworkAccess: access, ExperimentalOutboundPolicy: policy,
		Resources: pb.Resources_builder{
			MilliCpu: uint32(r.CPU) * perCPU, MilliCpuMax: uint32(r.CPU) * perCPU,
			MemoryMb: uint32(r.MemoryMB), MemoryMbMax: uint32(r.MemoryMB), GpuConfig: gpu,
		}.Build(),
	}
	if regions := p.regions(spec); len(regions) > 0 {
		definition.SchedulerPlacement = pb.SchedulerPlacement_builder{Regions: regions}.Build()
	}
	if access.GetNetworkAccessType() != pb.NetworkAccess_BLOCKED { // then Modal refuses open ports
		port := pb.PortSpec_builder{Port: uint32(p.config.Port)}.Build()
		definition.OpenPorts = pb.PortSpecs_builder{Ports: []*pb.PortSpec{port}}.Build()
	}
	return definition.Build(), nil
}

func (p *Provider) regions(spec adapters.Spec) []string {
	if spec.Region != "" {
		return []string{spec.Region}
	}
	return p.config.Regions
}

// perCPU is the thousandths of a physical core that are one virtual CPU.
const perCPU = 500

// gpu is what is asked for of GPUs; nil: none.
func (p *Provider) gpu(want adapters.GPU) (*pb.GPUConfig, error) {
	if want.Kind == "" {
		return nil, nil
	}
	for _, kind := range p.config.GPUs {
		if strings.EqualFold(kind, want.Kind) {
			return pb.GPUConfig_builder{Count: uint32(max(want.Count, 1)), GpuType: strings.ToUpper(kind)}.Build(), nil
		}
	}
	return nil, adapters.Errorf(adapters.KindUnsupported, "Modal has no GPU %q: it has %s", want.Kind, strings.Join(p.config.GPUs, ", "))
}
