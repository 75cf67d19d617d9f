package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"github.com/isthmus/isthmus/conformance/bench"
)

// figure is one of a benchmark's own, as it prints them: 12.5 p50-µs.
var figure = regexp.MustCompile(`([0-9.]+) ([^\s]+-(?:µs|ratio))`)

// addedCalls is how many creates the ratio of the gate is taken from at the least.
const addedCalls = 400

// control runs the benchmarks of the control plane, which need providers that answer at once and ten thousand
// records, and so are tests of their packages.
func (o options) control(ctx context.Context, r *bench.Report) error {
	if err := r.Quiet(ctx, "control plane"); err != nil {
		return err
	}
	added, times := "2s", "2s"
	if o.scale == "smoke" {
		added, times = strconv.Itoa(addedCalls)+"x", "20x"
	}
	return errors.Join(
		benchmark(ctx, r, added, "AddedLatency", "./server"),
		benchmark(ctx, r, times, "DecisionOverManyPools|ListTenThousand", "./server/fleet", "./store"))
}

// benchmark runs benchmarks of packages for a time, or so many times, and notes their figures.
func benchmark(ctx context.Context, r *bench.Report, times, names string, packages ...string) error {
	arguments := append([]string{"test", "-run", "^$", "-bench", names, "-benchtime", times}, packages...)
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		name, rest, found := strings.Cut(line, "\t")
		if !found || !strings.HasPrefix(name, "Benchmark") {
			continue
		}
		name, _, _ = strings.Cut(strings.TrimPrefix(name, "Benchmark"), "-")
		if err := note(r, strings.TrimSpace(name), rest); err != nil {
			return err
		}
	}
	return nil
}

// note adds the figures of one line of a benchmark.
func note(r *bench.Report, name, line string) error {
	count, _ := strconv.Atoi(strings.Fields(line)[0])
	for _, match := range figure.FindAllStringSubmatch(line, -1) {
		value, err := strconv.ParseFloat(match[1], 64)
		if err != nil {
			return err
		}
		what, unit, _ := cutLast(match[2], "-")
		if unit == "ratio" {
			what, unit = what+byTheSame, ""
		}
		r.Add(bench.Figure{Name: name + " " + what, Target: controlPlane, Unit: unit, Value: value, Of: count})
	}
	return nil
}

// cutLast cuts around the last of the separators.
func cutLast(text, separator string) (before, after string, found bool) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(separator):], true
}
