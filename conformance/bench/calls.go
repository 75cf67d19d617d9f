package bench

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// Calls measures a unary call: one at a time, and many at once.
func (r *Report) Calls(ctx context.Context, targets []*Target) error {
	const crowd = 32
	if err := r.Quiet(ctx, "calls"); err != nil {
		return err
	}
	call := func(ctx context.Context, t *Target) error { return t.list(ctx) }
	took, err := turns(ctx, targets, r.Scale.Calls, call)
	if err != nil {
		return err
	}
	r.latencies("unary call", targets, took)
	return r.crowd(ctx, fmt.Sprintf("unary call, %d at once", crowd), targets, crowd, 10*r.Scale.Calls, call)
}

// Commands measures starting a command and hearing of its end: one at a time, and many at once.
func (r *Report) Commands(ctx context.Context, targets []*Target) error {
	for _, c := range []struct {
		name string
		args []string
	}{{"true", []string{"/bin/true"}}, {"bash -l -c true", []string{"/bin/bash", "-l", "-c", "true"}}} {
		if err := r.Quiet(ctx, c.name); err != nil {
			return err
		}
		run := func(ctx context.Context, t *Target) error {
			_, err := t.run(ctx, JSON, c.args[0], c.args[1:]...)
			return err
		}
		took, err := turns(ctx, targets, max(r.Scale.Calls/4, 5), run)
		if err != nil {
			return err
		}
		r.latencies(c.name, targets, took)
		for _, crowd := range r.Scale.Crowds {
			if err := r.crowd(ctx, fmt.Sprintf("%s, %d at once", c.name, crowd), targets, crowd, max(2*crowd, r.Scale.Calls/2), run); err != nil {
				return err
			}
		}
	}
	return nil
}

// crowd measures how many calls a second are done when so many of the total are under way.
func (r *Report) crowd(ctx context.Context, name string, targets []*Target, crowd, total int, do func(context.Context, *Target) error) error {
	for _, t := range targets {
		began, used := time.Now(), processorTime(t.Processes)
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(crowd)
		for range total {
			group.Go(func() error { return do(ctx, t) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
		r.add(name, t.Name, "1/s", float64(total)/time.Since(began).Seconds(), total)
		if len(t.Processes) > 0 {
			r.add(name+", processor", t.Name, "ms", ms((processorTime(t.Processes)-used)/time.Duration(total)), total)
		}
	}
	return nil
}
