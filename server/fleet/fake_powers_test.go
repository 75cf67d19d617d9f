package fleet

import (
	"context"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// powers are what a fake declares that can do everything, at these levels.
func powers(pause, snapshot adapters.Level) []adapters.Capability {
	var all []adapters.Capability
	for feature, value := range map[adapters.Feature]string{
		adapters.FeaturePause: string(pause), adapters.FeatureSnapshot: string(snapshot), adapters.FeatureEgressLists: adapters.Yes,
		adapters.FeatureLiveNetwork: adapters.Yes, adapters.FeatureInternetOff: adapters.Yes,
	} {
		all = append(all, adapters.Capability{Feature: feature, Value: value, Source: "the test", Evidence: adapters.Declared})
	}
	return all
}

// enter is the begin of a call to a power: the box, or an error.
func (p *fake) enter(ctx context.Context, call, id string) error {
	if err := p.silence(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	onPower := p.onPower
	p.mu.Unlock()
	if onPower != nil {
		if err := onPower(call, id); err != nil {
			return err
		}
	}
	return nil
}

// change does something to a box.
func (p *fake) change(ctx context.Context, call, id string, do func(*fakeBox)) error {
	if err := p.enter(ctx, call, id); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	box := p.boxes[id]
	if box == nil || !box.Alive {
		return adapters.Errorf(adapters.KindNotFound, "no box %s", id)
	}
	do(box)
	return p.answer
}

func (p *fake) Pause(ctx context.Context, id string, _ adapters.Level) error {
	return p.change(ctx, "pause", id, func(box *fakeBox) { box.Paused = true })
}

func (p *fake) Resume(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	var got adapters.Box
	err := p.change(ctx, "resume", spec.BoxID, func(box *fakeBox) {
		box.Paused, box.deadline = false, spec.Envd.Deadline
		got, p.resumed = box.Box, append(p.resumed, spec)
	})
	return got, err
}

func (p *fake) Snapshot(ctx context.Context, spec adapters.Spec, name string) (adapters.Snapshot, error) {
	made := adapters.Snapshot{Name: name, Ref: "ref-" + name, Deployment: spec.Deployment, Level: adapters.LevelFilesystem, CreatedAt: time.Now(), Ready: true}
	err := p.change(ctx, "snapshot", spec.BoxID, func(*fakeBox) {
		if p.copies == nil {
			p.copies = map[string]adapters.Snapshot{}
		}
		if p.spoil != nil {
			p.spoil(&made)
		}
		p.copies[name] = made
	})
	return made, err
}

func (p *fake) Snapshots(_ context.Context, deployment string) ([]adapters.Snapshot, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []adapters.Snapshot
	for _, one := range p.copies {
		if one.Deployment == deployment {
			list = append(list, one)
		}
	}
	return list, nil
}

func (p *fake) Forget(ctx context.Context, snapshot adapters.Snapshot) error {
	if err := p.enter(ctx, "forget", snapshot.Ref); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.copies[snapshot.Name].Ref == snapshot.Ref {
		delete(p.copies, snapshot.Name)
	}
	return nil
}

func (p *fake) SetNetwork(ctx context.Context, id string, network adapters.Network) error {
	return p.change(ctx, "set_network", id, func(*fakeBox) {
		if p.networks == nil {
			p.networks = map[string]adapters.Network{}
		}
		p.networks[id] = network
	})
}
