package bench

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// used adds up, by target, the processor time of what is done.
func used(do func(context.Context, *Target) error) (func(context.Context, *Target) error, map[string]time.Duration) {
	spent := map[string]time.Duration{}
	return func(ctx context.Context, t *Target) error {
		before := processorTime(t.Processes)
		err := do(ctx, t)
		spent[t.Name] += processorTime(t.Processes) - before
		return err
	}, spent
}

// Output measures the standard output of one command, in both encodings, as it comes over the wire: it is not
// decoded.
func (r *Report) Output(ctx context.Context, targets []*Target) error {
	const block = 64 << 10 // what the program writes at a time: a slow program would be measured otherwise
	count := strconv.FormatInt(r.Scale.Output/block, 10)
	for _, how := range []Encoding{Binary, JSON} {
		name := "stdout, " + string(how)
		if err := r.Quiet(ctx, name); err != nil {
			return err
		}
		do, spent := used(func(ctx context.Context, t *Target) error {
			n, err := t.run(ctx, how, "/bin/dd", "if=/dev/zero", "bs=64K", "count="+count, "status=none")
			if err == nil && n < r.Scale.Output {
				err = fmt.Errorf("%s: only %d of %d bytes came", t.Name, n, r.Scale.Output)
			}
			return err
		})
		took, err := turns(ctx, targets, r.Scale.Rounds, do)
		if err != nil {
			return err
		}
		r.rates(name, targets, took, spent, r.Scale.Output)
	}
	return nil
}

// Files measures carrying files up and down.
func (r *Report) Files(ctx context.Context, targets []*Target) error {
	for _, size := range r.Scale.Files {
		if err := r.Quiet(ctx, "files"); err != nil {
			return err
		}
		for _, way := range []struct {
			name string
			do   func(context.Context, *Target) error
		}{
			{"upload", func(ctx context.Context, t *Target) error { return t.upload(ctx, "big", size) }},
			{"download", func(ctx context.Context, t *Target) error { return t.download(ctx, "big", size) }},
		} {
			do, spent := used(way.do)
			before := make(map[string]Memory, len(targets))
			for _, t := range targets {
				before[t.Name] = MemoryOf(t.Processes)
			}
			took, err := turns(ctx, targets, max(1, r.Scale.Rounds*3/7), do)
			if err != nil {
				return err
			}
			name := fmt.Sprintf("%s of %d MiB", way.name, size>>20)
			r.rates(name, targets, took, spent, size)
			for _, t := range targets {
				if len(t.Processes) > 0 {
					grown := MemoryOf(t.Processes).Minus(before[t.Name])
					r.add(name+", growth of memory", t.Name, "MB", float64(grown.Own)/1e6, len(took[t.Name]))
				}
			}
		}
	}
	return nil
}

// Small measures writing and reading files of a kibibyte, one at a time and some at once.
func (r *Report) Small(ctx context.Context, targets []*Target) error {
	const size, crowd = 1 << 10, 16
	if err := r.Quiet(ctx, "small files"); err != nil {
		return err
	}
	for _, way := range []struct {
		name string
		do   func(context.Context, *Target) error
	}{
		{"write 1 KiB", func(ctx context.Context, t *Target) error { return t.upload(ctx, "small", size) }},
		{"read 1 KiB", func(ctx context.Context, t *Target) error { return t.download(ctx, "small", size) }},
	} {
		took, err := turns(ctx, targets, r.Scale.Small, way.do)
		if err != nil {
			return err
		}
		r.latencies(way.name, targets, took)
		if way.name == "read 1 KiB" { // writers of one file would see each other
			if err := r.crowd(ctx, fmt.Sprintf("%s, %d at once", way.name, crowd), targets, crowd, r.Scale.Small*2, way.do); err != nil {
				return err
			}
		}
	}
	return nil
}
