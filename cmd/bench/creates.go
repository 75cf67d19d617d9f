package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/isthmus/isthmus/conformance/bench"
)

// place is where sandboxes are created.
type place struct {
	name, lines string
	flags       []string
	pause       int // ms before each create, in which a box is made ahead
	facade      *facade
	seen        seen
}

// creates compares the time from a create to the first command: cold, made ahead, and without isolation, by the
// JavaScript SDK and by our own client. All facades run at the same time and are asked in turns, a few creates each.
func (o options) creates(ctx context.Context, r *bench.Report) (failed error) {
	places := []*place{
		{name: process, lines: "local:\n  warm: {}\n", flags: []string{"--isolation", "process", "--process-as-root"}},
		{name: container, lines: "local:\n  warm: {}\n"},
		{name: warm, lines: "local:\n  warm: {base: 3}\n", pause: 400},
	}
	for _, p := range places {
		f, err := o.newFacade(ctx, p.lines, p.flags...)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		defer func() { failed = errors.Join(failed, f.stop()) }()
		p.facade = f
	}
	if err := r.Quiet(ctx, "creates"); err != nil {
		return err
	}
	if err := sequences(ctx, places, r.Scale.Sequential); err != nil {
		return err
	}
	for _, p := range places {
		if err := p.burst(ctx, r); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// sequences has the SDK create so many sandboxes at each place, one after the other, in rounds.
func sequences(ctx context.Context, places []*place, count int) error {
	rounds := min(count, 5)
	for round := range rounds {
		for i := range places {
			p := places[(i+round)%len(places)]
			if err := p.see(ctx, count/rounds, 0); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	return nil
}

// burst has the SDK create many sandboxes at once, and our own client some in both ways, and reports all of the place.
func (p *place) burst(ctx context.Context, r *bench.Report) error {
	if err := r.Quiet(ctx, "bursts, "+p.name); err != nil {
		return err
	}
	if err := p.see(ctx, 0, r.Scale.Burst); err != nil {
		return err
	}
	add := func(what, unit string, value float64, of int) {
		r.Add(bench.Figure{Name: what, Target: p.name, Unit: unit, Value: value, Of: of})
	}
	for _, one := range []struct {
		way   string
		times []float64
	}{{"create to first command, SDK", p.seen.Sequential}, {"create to first command, SDK, burst", p.seen.Burst}} {
		if slices.Sort(one.times); len(one.times) > 0 {
			add(one.way+" p50", "ms", one.times[len(one.times)/2], len(one.times))
			add(one.way+" p99", "ms", one.times[len(one.times)*99/100], len(one.times))
		}
	}
	add("create to first command, SDK, failures", "", float64(p.seen.Failures), r.Scale.Sequential+r.Scale.Burst)
	if p.pause == 0 { // our own client does not wait for boxes that are made ahead
		for _, i := range []bench.Interactive{p.facade.Measure(ctx, "sequential", r.Scale.Sequential, 1), p.facade.Measure(ctx, "burst", r.Scale.Burst, r.Scale.Burst)} {
			add("create to first command, "+i.Way+" p50", "ms", i.P50, i.Succeeded)
			add("create to first command, "+i.Way+" p99", "ms", i.P99, i.Succeeded)
			add("create to first command, "+i.Way+", failures", "", float64(i.Tried-i.Succeeded), i.Tried)
		}
	}
	return nil
}

// see runs the SDK's program and keeps what it saw.
func (p *place) see(ctx context.Context, sequential, burst int) error {
	found, err := sdk(ctx, p.facade, sequential, p.pause, burst)
	p.seen.Sequential = append(p.seen.Sequential, found.Sequential...)
	p.seen.Burst = append(p.seen.Burst, found.Burst...)
	p.seen.Failures += found.Failures
	return err
}

// seen is what the SDK's program prints.
type seen struct {
	Sequential, Burst []float64
	Failures          int
}

// sdk runs the program of the JavaScript SDK.
func sdk(ctx context.Context, f *facade, sequential, pause, burst int) (seen, error) {
	folder, err := filepath.Abs("conformance/sdk/js")
	if err != nil {
		return seen{}, err
	}
	command := exec.CommandContext(ctx, "node", "bench.js", strconv.Itoa(sequential), strconv.Itoa(pause), strconv.Itoa(burst))
	command.Dir = folder
	command.Env = append(os.Environ(), "E2B_API_URL="+f.APIURL, "E2B_SANDBOX_URL="+f.SandboxURL, "E2B_API_KEY="+f.APIKey)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return seen{}, fmt.Errorf("the SDK's program: %w", err)
	}
	var found seen
	return found, json.Unmarshal(out, &found)
}
