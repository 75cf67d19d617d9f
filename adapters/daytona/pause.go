package daytona

import (
	"context"
	"net/http"

	"github.com/isthmus/isthmus/adapters"
)

// Pause stops a box: a container keeps its files, a virtual machine its memory too, if that is asked for. Daytona's
// own timer would end it while it rests, so that is taken away first.
func (p *Provider) Pause(ctx context.Context, boxID string, level adapters.Level) error {
	call, state := "stop", stateStopped
	if level == adapters.LevelMemory {
		if p.config.Class != ClassVM {
			return adapters.Errorf(adapters.KindUnsupported,
				"a sandbox of this pool keeps its files when it is paused, and not its memory: pause it without, or use a pool of virtual machines")
		}
		call, state = "pause", statePaused
	}
	found, err := p.present(ctx, boxID)
	if err != nil {
		return err
	}
	if found.box().Paused && found.DesiredState != stateStarted && !found.recovers() {
		return nil
	}
	if err := pausable(found, boxID, level); err != nil {
		return err
	}
	if err := p.setTTL(ctx, found.ID, 0); err != nil {
		return err
	}
	p.keeper.drop(boxID)
	p.remember(boxID, func(k *known) { k.endpoint = adapters.Endpoint{} })
	if found.recovers() {
		return nil // it does not run already
	}
	err = p.api.insist(ctx, request{method: http.MethodPost, path: sandboxPath(found.ID, call), makes: true})
	if err == nil {
		_, err = p.until(ctx, found.ID, state)
	}
	return p.lost(boxID, err)
}

// pausable refuses a pause that would lose what it is to keep.
func pausable(found sandbox, boxID string, level adapters.Level) error {
	switch {
	case found.failed():
		return adapters.Errorf(adapters.KindNotFound, "the sandbox %s has ended", boxID)
	case found.ephemeral():
		return adapters.Errorf(adapters.KindUnsupported,
			"Daytona deletes the sandbox %s when it stops, as it does those with a GPU: let it run or end it, or use a template that can be paused", boxID)
	case found.recovers() && level == adapters.LevelMemory:
		return adapters.Errorf(adapters.KindPrecondition, "the sandbox %s came to an error and has no memory any more: pause it without, or resume it", boxID)
	}
	return nil
}

// Resume starts a paused box again, and returns when programs can be started in it. One that came to an error is
// recovered first: whether that starts it too differs.
func (p *Provider) Resume(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	found, err := p.present(ctx, spec.BoxID)
	if err != nil {
		return adapters.Box{}, err
	}
	p.remember(spec.BoxID, func(k *known) { k.endpoint = adapters.Endpoint{} })
	if !found.at(stateStarted) {
		if found.recovers() {
			err = p.toward(ctx, found.ID, "recover")
		}
		if err == nil {
			err = p.toward(ctx, found.ID, "start")
		}
		if err == nil {
			found, err = p.until(ctx, found.ID, stateStarted)
		}
		if err != nil {
			return adapters.Box{}, p.lost(spec.BoxID, err)
		}
	}
	if err := p.setTTL(ctx, found.ID, minutesBetween(found.CreatedAt, spec.Envd.Deadline)); err != nil {
		return adapters.Box{}, p.lost(spec.BoxID, err)
	}
	p.keeper.set(spec.BoxID, spec.Envd.Deadline)
	return found.box(), nil
}

// toward makes a call that brings a sandbox nearer to running. Refused by its state it may be on its way already.
func (p *Provider) toward(ctx context.Context, sandboxID, call string) error {
	err := p.api.insist(ctx, request{method: http.MethodPost, path: sandboxPath(sandboxID, call), makes: true})
	if kind := adapters.KindOf(err); err != nil && (kind == adapters.KindInvalid || kind == adapters.KindPrecondition) {
		return nil
	}
	return err
}

// lost forgets a box that turned out to be gone.
func (p *Provider) lost(boxID string, err error) error {
	if err != nil && adapters.KindOf(err) == adapters.KindNotFound {
		p.forget(boxID)
		return gone(boxID)
	}
	return err
}
