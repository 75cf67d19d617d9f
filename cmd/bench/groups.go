package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/isthmus/isthmus/conformance/bench"
)

// The targets, as the tables name them.
const (
	straight  = "straight"   // the envd of a sandbox over its socket
	bareH1    = "bare proxy" // the standard library's proxy in front of the same
	bareH2C   = "bare h2c"   //
	facadeH1  = "facade"     // Isthmus in front of the same
	facadeH2C = "facade h2c" //
	plain     = "envd"       // our envd as a plain process, straight
	upstream  = "upstream"   // upstream's envd as a plain process, straight
	container = "container"  // sandboxes of the local backend
	process   = "process"    // sandboxes without isolation
	warm      = "warm"       // sandboxes of the local backend that were made ahead
)

// group is a part of the run.
type group struct {
	name    string
	measure func(context.Context, *bench.Report) error
}

func (o options) groups() []group {
	all := []group{
		{"proxy", o.proxies}, {"envd", o.daemons}, {"create", o.creates}, {"idle", o.idle}, {"control", o.control},
	}
	return slices.DeleteFunc(all, func(g group) bool { return !o.measures(g.name) })
}

// measures reports whether a group is asked for, in part or whole.
func (o options) measures(group string) bool {
	return o.only == "" || slices.ContainsFunc(strings.Split(o.only, ","), func(asked string) bool {
		return asked == group || strings.HasPrefix(asked, group+"/")
	})
}

// part is a part of a group.
type part struct {
	name    string
	measure func(context.Context, []*bench.Target) error
}

// parts measures those of a group that are asked for: all, or some by GROUP/PART.
func (o options) parts(ctx context.Context, group string, targets []*bench.Target, parts ...part) error {
	asked := strings.Split(o.only, ",")
	for _, p := range parts {
		if o.only != "" && !slices.Contains(asked, group) && !slices.Contains(asked, group+"/"+p.name) {
			continue
		}
		fmt.Printf("bench: %s/%s\n", group, p.name)
		if err := p.measure(ctx, targets); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// proxies compares the ways to one sandbox.
func (o options) proxies(ctx context.Context, r *bench.Report) (failed error) {
	f, err := o.newFacade(ctx, "local:\n  warm: {}\n")
	if err != nil {
		return err
	}
	defer func() { failed = errors.Join(failed, f.stop()) }()
	made, err := f.Create(ctx)
	if err != nil {
		return err
	}
	at, err := f.find(made.ID)
	if err != nil {
		return err
	}
	bare, address, err := bareProxy(ctx, at.socket)
	if err != nil {
		return err
	}
	defer func() { failed = errors.Join(failed, bare.stop()) }()
	ways := waysTo(f, made, at, bare, address)
	if err := prepare(ctx, ways[:1]); err != nil {
		return err
	}
	return o.parts(ctx, "proxy", ways, part{"calls", r.Calls}, part{"terminals", r.Terminals}, part{"watches", r.Watches}, part{"small", r.Small},
		part{"files", r.Files}, part{"output", r.Output}, part{"commands", r.Commands},
		part{"memory", func(ctx context.Context, ways []*bench.Target) error { return r.Memory(ctx, proxiesAlone(ways)) }})
}

// proxiesAlone are the ways through proxies, of which only the proxies' own memory counts.
func proxiesAlone(ways []*bench.Target) []*bench.Target {
	var alone []*bench.Target
	for _, t := range ways {
		if t.Name != straight {
			one := *t
			one.Processes = t.Processes[:1]
			alone = append(alone, &one)
		}
	}
	return alone
}

// waysTo are straight, bare by two protocols, and the facade by two.
func waysTo(f *facade, made bench.Sandbox, at box, bare *program, address string) []*bench.Target {
	target := func(name, url string, direct bool, pids ...int) *bench.Target {
		t := f.Target(name, made)
		t.URL, t.Processes = url, append(pids, at.pid)
		if direct {
			t.Header.Set("Isthmus-Transport", at.transport)
		}
		return t
	}
	one := target(straight, "http://envd", true)
	one.Client = client(overSocket(at.socket))
	two := target(bareH1, address, true, bare.pid())
	three := target(bareH2C, address, true, bare.pid())
	two.Client, three.Client = overTCP(), overH2C()
	four := target(facadeH1, f.SandboxURL, false, f.pid())
	five := target(facadeH2C, f.SandboxURL, false, f.pid())
	four.Client, five.Client = overTCP(), overH2C()
	return []*bench.Target{one, two, three, four, five}
}

// prepare makes the folders that are written into.
func prepare(ctx context.Context, targets []*bench.Target) error {
	var errs []error
	for _, t := range targets {
		errs = append(errs, t.Prepare(ctx))
	}
	return errors.Join(errs...)
}

// daemons compares our envd with upstream's, both plain processes reached straight, as the same user.
func (o options) daemons(ctx context.Context, r *bench.Report) (failed error) {
	ours, url, err := plainEnvd(ctx)
	if err != nil {
		return err
	}
	defer func() { failed = errors.Join(failed, ours.stop()) }()
	folder, err := os.MkdirTemp("", "isthmus-bench-files-")
	if err != nil {
		return err
	}
	defer func() { failed = errors.Join(failed, os.RemoveAll(folder)) }()
	targets := []*bench.Target{bench.Plain(plain, url, filepath.Join(folder, "ours"), ours.pid())}
	if o.upstream == "" {
		r.Leave("upstream's envd", "its binary was not named (--upstream)")
	} else {
		theirs, url, err := o.upstreamEnvd(ctx)
		if err != nil {
			return err
		}
		defer func() { failed = errors.Join(failed, theirs.stop()) }()
		targets = append(targets, bench.Plain(upstream, url, filepath.Join(folder, "theirs"), theirs.pid()))
	}
	idle := func(ctx context.Context, targets []*bench.Target) error {
		for _, t := range targets {
			if err := r.Idle(ctx, "envd without work", t.Name, t.Processes, o.seconds(10)); err != nil {
				return err
			}
		}
		return nil
	}
	err = o.parts(ctx, "envd", targets, part{"idle", idle})
	if err == nil {
		err = prepare(ctx, targets)
	}
	if err != nil {
		return err
	}
	return o.parts(ctx, "envd", targets, part{"memory", r.Memory}, part{"calls", r.Calls}, part{"commands", r.Commands}, part{"output", r.Output},
		part{"terminals", r.Terminals}, part{"watches", r.Watches}, part{"small", r.Small}, part{"files", r.Files})
}

// seconds is a time over which something is watched; next to none in a smoke run.
func (o options) seconds(n int) time.Duration {
	if o.scale == "smoke" {
		n = 1
	}
	return time.Duration(n) * time.Second
}
