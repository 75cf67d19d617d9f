package modal

import (
	"context"
	"regexp"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"

	"github.com/isthmus/isthmus/adapters"
)

// firstIDs is the form of the ids of sandboxes of the first version. Which version a sandbox is of decides by which
// calls it is spoken of, and nothing but its id tells.
var firstIDs = regexp.MustCompile(`^sb-[0-9A-Za-z]{22}$`)

func isFirst(sandbox string) bool { return firstIDs.MatchString(sandbox) }

// The waits between two looks whether a sandbox of the first version is placed.
const (
	firstLook = 100 * time.Millisecond
	lastLook  = time.Second
)

// placeFirst makes a sandbox of the first version, as GPUs need it: Modal answers at once, and then it is waited for.
func (p *Provider) placeFirst(ctx context.Context, app string, definition *pb.Sandbox, tags []*pb.SandboxTag) (*known, error) {
	var answer *pb.SandboxCreateResponse
	err := p.control.make(ctx, func(ctx context.Context) (err error) {
		answer, err = p.control.stub.SandboxCreate(ctx, pb.SandboxCreateRequest_builder{
			AppId: app, Definition: definition, Tags: tags, EnvironmentName: p.config.Environment,
		}.Build())
		return err
	})
	if err != nil {
		return nil, err
	}
	one := &known{id: answer.GetSandboxId(), created: time.Now().UTC()}
	if one.id == "" {
		return nil, vendor.Unread(adapters.KindUnknownOutcome, nil, "a sandbox was made and it does not say which")
	}
	if err := p.awaitTask(ctx, one); err != nil {
		return nil, p.giveUp(ctx, one, err)
	}
	return one, nil
}

// awaitTask waits until the sandbox is placed, and at most as long as a create may take.
func (p *Provider) awaitTask(ctx context.Context, one *known) error {
	bounded, cancel := context.WithTimeout(ctx, createTime)
	defer cancel()
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		err := p.learnTask(bounded, one)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case bounded.Err() != nil:
			return adapters.Errorf(adapters.KindCapacity, "Modal has had no room for the sandbox for %s", createTime)
		case err != nil || one.task != "":
			return err
		}
		sleep(bounded, pause)
	}
}

// giveUp ends a sandbox that was made and could not be waited for.
func (p *Provider) giveUp(ctx context.Context, one *known, cause error) error {
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	if err := p.terminate(clean, one.id); err != nil && adapters.KindOf(err) != adapters.KindNotFound {
		return adapters.Wrap(adapters.KindUnknownOutcome, err, "a sandbox that Modal could not place in time could not be ended")
	}
	return cause
}
