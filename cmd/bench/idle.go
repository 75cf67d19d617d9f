package main

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/isthmus/isthmus/conformance/bench"
)

// idle measures a facade alone, and with many sandboxes that do nothing.
func (o options) idle(ctx context.Context, r *bench.Report) (failed error) {
	f, err := o.newFacade(ctx, "local:\n  warm: {}\nlimits:\n  max_sandboxes: 2000\n  team_concurrency: 2000\n")
	if err != nil {
		return err
	}
	defer func() { failed = errors.Join(failed, f.stop()) }()
	if err := r.Quiet(ctx, "idle"); err != nil {
		return err
	}
	if err := r.Idle(ctx, "facade without sandboxes", facadeH1, []int{f.pid()}, o.seconds(10)); err != nil {
		return err
	}
	pids := []int{f.pid()}
	var mu sync.Mutex
	group, making := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for range r.Scale.Idle {
		group.Go(func() error {
			made, err := f.Create(making)
			if err != nil {
				return err
			}
			at, err := f.find(made.ID)
			mu.Lock()
			defer mu.Unlock()
			pids = append(pids, at.pid)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := r.Idle(ctx, "facade and idle sandboxes", container, pids, o.seconds(30)); err != nil {
		return err
	}
	return perSandbox(r)
}

// perSandbox divides what all have by the number of sandboxes.
func perSandbox(r *bench.Report) error {
	n := float64(r.Scale.Idle)
	for name, from := range map[string]string{
		"memory of an idle sandbox, facade and envd together": "facade and idle sandboxes, memory with its part of what is shared",
		"resident memory of an idle sandbox, together":        "facade and idle sandboxes, resident memory",
	} {
		total, _ := r.Value(from, container)
		r.Add(bench.Figure{Name: name, Target: container, Unit: "MB", Value: total / n, Of: r.Scale.Idle})
	}
	return nil
}
