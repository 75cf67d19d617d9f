package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/isthmus/isthmus/conformance/bench"
)

// judge holds the figures against each other.
func judge(r *bench.Report) {
	for _, part := range []string{"p50", "p99"} {
		r.Added(1.3, "unary call "+part, facadeH1, bareH1, straight)
		r.Added(1.3, "unary call "+part, facadeH2C, bareH2C, straight)
	}
	for _, name := range []string{"upload of 1024 MiB", "download of 1024 MiB", "stdout, proto", "stdout, json"} {
		r.AtLeast(0.9, name, facadeH1, bareH1)
		r.AtLeast(0.9, name, facadeH2C, bareH2C)
	}
	r.AtMost(0.4, "true p50", plain, upstream)
	r.AtMost(0.65, "bash -l -c true p50", plain, upstream)
	r.AtLeast(4, "stdout, proto", plain, upstream)
	r.AtLeast(4, "stdout, json", plain, upstream)
	r.AtMost(0.4, "memory of an open stream", plain, upstream)
	r.AtMost(1, "envd without work, resident memory", plain, upstream)
	r.AtMost(0.1, "envd without work, processor", plain, upstream)
	r.AtMost(4, "create to first command, SDK p50", container, process)
	r.AtMost(1.5, "create to first command, SDK p50", warm, process)
	r.Bound(8, "memory of an idle sandbox, facade and envd together", container)
	r.Bound(1.5, "facade and idle sandboxes, processor", container)
	r.Bound(600, "AddedLatency p50", controlPlane)
	r.Bound(5000, "AddedLatency p99", controlPlane)
	r.Bound(1000, "DecisionOverManyPools p99", controlPlane)
	r.Bound(addedMost, addedRatio, controlPlane)
}

const (
	controlPlane = "control plane"
	byTheSame    = " by the same listener answering at once"
	// addedRatio is the gate: what a create costs by what the same listener costs that answers at once, of the quickest
	// tenth of the calls, because what else the machine does meets the others. It is about 6.
	addedRatio = "AddedLatency p10" + byTheSame
	addedMost  = 10
)

// gate fails where routing has become much dearer. It says nothing when the control plane was not measured.
func (o options) gate(r *bench.Report) error {
	ratio, measured := r.Value(addedRatio, controlPlane)
	switch {
	case !measured && o.measures("control"):
		return errors.New("what the control plane adds to a create was not measured")
	case ratio > addedMost:
		return fmt.Errorf("a create costs %.1f times what the same listener costs that answers at once, and may cost %d times that: routing has become dearer", ratio, addedMost)
	}
	return nil
}

// write leaves report.json, bench.md and bench.svg.
func (o options) write(r *bench.Report) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	page := r.Page()
	fmt.Println(page)
	return errors.Join(
		os.WriteFile(filepath.Join(o.out, "report.json"), append(text, '\n'), 0o644),
		os.WriteFile(filepath.Join(o.out, "bench.md"), []byte(page), 0o644),
		os.WriteFile(filepath.Join(o.out, "bench.svg"), []byte(r.Plot()), 0o644))
}
