package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"
)

// Interactive is the time from a create to the end of the first command, by the public method: so many one after
// the other, and as many again in one burst; failures are counted and have no time.
type Interactive struct {
	// Way is sequential or burst.
	Way       string  `json:"way"`
	Tried     int     `json:"tried"`
	Succeeded int     `json:"succeeded"`
	P50       float64 `json:"p50_ms"`
	P95       float64 `json:"p95_ms"`
	P99       float64 `json:"p99_ms"`
	// Wall is how long all of it took, in seconds, the kills included.
	Wall float64 `json:"wall_s"`
	// Failures are a few of the errors.
	Failures []string `json:"failures,omitempty"`
}

// killLimit bounds the kill of one sandbox, which is not part of the time.
const killLimit = 2 * time.Minute

// Measure makes sandboxes, runs one command in each and kills them.
func (s Server) Measure(ctx context.Context, way string, count, atOnce int) Interactive {
	result := Interactive{Way: way, Tried: count}
	times, faults := make([]time.Duration, count), make([]error, count)
	began := time.Now()
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i := range count {
		group.Go(func() error {
			times[i], faults[i] = s.interactive(ctx)
			return nil
		})
	}
	_ = group.Wait()
	result.Wall = time.Since(began).Seconds()
	var good []time.Duration
	for i, err := range faults {
		if err == nil {
			good = append(good, times[i])
		} else if len(result.Failures) < 5 {
			result.Failures = append(result.Failures, err.Error())
		}
	}
	if result.Succeeded = len(good); len(good) > 0 {
		result.P50, result.P95, result.P99 = ms(at(good, 50)), ms(at(good, 95)), ms(at(good, 99))
	}
	return result
}

// interactive makes one sandbox, uses it and kills it.
func (s Server) interactive(ctx context.Context) (took time.Duration, _ error) {
	began := time.Now()
	made, err := s.Create(ctx)
	if err != nil {
		return 0, err
	}
	err = s.Target("", made).first(ctx)
	took = time.Since(began)
	killing, cancel := context.WithTimeout(context.WithoutCancel(ctx), killLimit)
	defer cancel()
	if killed := s.Kill(killing, made.ID); killed != nil {
		err = errors.Join(err, fmt.Errorf("the sandbox %s may be left: %w", made.ID, killed))
	}
	return took, err
}

// PrintInteractive writes a table.
func PrintInteractive(out io.Writer, results []Interactive) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "way\ttried\tsucceeded\tp50 ms\tp95 ms\tp99 ms\twall s\t")
	for _, r := range results {
		fmt.Fprintf(w, "%s\t%d\t%.1f %%\t%.1f\t%.1f\t%.1f\t%.1f\t\n", r.Way, r.Tried, 100*float64(r.Succeeded)/float64(max(r.Tried, 1)), r.P50, r.P95, r.P99, r.Wall)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, r := range results {
		for _, failure := range r.Failures {
			fmt.Fprintf(out, "%s failed: %s\n", r.Way, failure)
		}
	}
	return nil
}
