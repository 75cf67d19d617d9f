package modal

import (
	"context"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"

	"github.com/isthmus/isthmus/adapters"
)

// Get returns a box of ours. One that has ended by itself is not found, and the message says why it ended.
func (p *Provider) Get(ctx context.Context, boxID string) (adapters.Box, error) {
	one, err := p.lookUp(ctx, boxID)
	if err != nil {
		return adapters.Box{}, err
	}
	cause, err := p.endOf(ctx, one.id, 0)
	cause, err = p.whetherEnded(ctx, boxID, cause, err)
	if adapters.KindOf(err) == adapters.KindNotFound || err == nil && cause != "" {
		p.log.Warn("a sandbox has ended that nobody ended here", "box", boxID, "cause", cause)
		p.forget(boxID)
		return adapters.Box{}, gone(boxID, cause)
	}
	if err != nil {
		return adapters.Box{}, err
	}
	return one.box(boxID), nil
}

// List returns the boxes of a deployment that run.
func (p *Provider) List(ctx context.Context, deployment string) ([]adapters.Box, error) {
	found, err := p.list(ctx, map[string]string{tagDeployment: deployment}, false)
	if err != nil {
		return nil, err
	}
	boxes := make([]adapters.Box, 0, len(found))
	for _, one := range found {
		boxes = append(boxes, one.box(one.boxID))
	}
	return boxes, nil
}

// endOf is why a sandbox has ended, waiting for so long; empty: it runs.
func (p *Provider) endOf(ctx context.Context, sandbox string, wait time.Duration) (string, error) {
	request := pb.SandboxWaitRequest_builder{SandboxId: sandbox, Timeout: float32(wait.Seconds())}.Build()
	var answer *pb.SandboxWaitResponse
	err := p.control.do(ctx, func(ctx context.Context) (err error) {
		if isFirst(sandbox) {
			answer, err = p.control.stub.SandboxWait(ctx, request)
		} else {
			answer, err = p.control.stub.SandboxWaitV2(ctx, request)
		}
		return err
	})
	if err == nil {
		err = strangeResult(answer.GetResult())
	}
	return ending(answer.GetResult()), err
}

// endWait is how long one question for the end of a sandbox takes at most, endTime how long all of them do.
const (
	endWait = 10 * time.Second
	endTime = 2 * time.Minute
)

// Destroy ends the sandbox and returns when it has ended: then its name is free.
func (p *Provider) Destroy(ctx context.Context, boxID string) error {
	p.mu.Lock()
	one := p.boxes[boxID]
	p.mu.Unlock()
	if one == nil {
		var err error
		if one, err = p.find(ctx, boxID, false); adapters.KindOf(err) == adapters.KindNotFound && err != nil {
			return nil
		} else if err != nil {
			return err
		}
	}
	if err := p.terminate(ctx, one.id); err != nil && adapters.KindOf(err) != adapters.KindNotFound {
		return err
	}
	if err := p.awaitEnd(ctx, one.id); err != nil {
		if _, err = p.whetherEnded(ctx, boxID, "", err); err != nil {
			return err
		}
	}
	p.forget(boxID)
	return nil
}

// whetherEnded takes an answer about the end of a sandbox further that was not understood: one that Modal does not find
// any more among those that run has ended, for a reason that is new.
func (p *Provider) whetherEnded(ctx context.Context, boxID, cause string, err error) (string, error) {
	odd := adapters.MisreadOf(err)
	if odd == nil {
		return cause, err
	}
	if _, lookErr := p.find(ctx, boxID, false); lookErr != nil && adapters.KindOf(lookErr) == adapters.KindNotFound {
		return odd.Reason, nil
	}
	return "", err
}

// terminate asks for the end of a sandbox. One that has ended is success.
func (p *Provider) terminate(ctx context.Context, sandbox string) error {
	request := pb.SandboxTerminateRequest_builder{SandboxId: sandbox}.Build()
	return p.control.do(ctx, func(ctx context.Context) (err error) {
		if isFirst(sandbox) {
			_, err = p.control.stub.SandboxTerminate(ctx, request)
		} else {
			_, err = p.control.stub.SandboxTerminateV2(ctx, request)
		}
		return err
	})
}

// awaitEnd waits for the end that was asked for.
func (p *Provider) awaitEnd(ctx context.Context, sandbox string) error {
	bounded, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	for pause := firstWait; ; pause = min(2*pause, lastWait) {
		cause, err := p.endOf(bounded, sandbox, endWait)
		switch {
		case cause != "", err != nil && adapters.KindOf(err) == adapters.KindNotFound:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case bounded.Err() != nil:
			return adapters.Errorf(adapters.KindUnavailable, "Modal was asked to end the sandbox and has not done so within %s", endTime)
		case err != nil:
			return err
		}
		sleep(bounded, pause) // a server that answers at once must not be asked without end
	}
}

// Run bakes envd into the templates' images, until ctx ends.
func (p *Provider) Run(ctx context.Context) error {
	if p.config.Envd == nil {
		<-ctx.Done()
		return nil
	}
	for _, t := range p.config.Templates {
		p.bakeLater(t)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case t := <-p.bakes:
			p.bake(ctx, t)
		}
	}
}
