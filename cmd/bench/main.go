// Command bench measures Isthmus beside what it is held against, in one run: a bare reverse proxy, the floor of no
// proxy at all, sandboxes without isolation, and upstream's envd where its binary is named. `make bench` runs it; it
// is no part of what is shipped, and needs root, Node and the built programs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/isthmus/isthmus/conformance/bench"
)

// options are what one run is told.
type options struct {
	// upstream is the path of upstream's envd; empty: it is not compared with.
	upstream string
	// images is a data folder with built images.
	images string
	// out gets report.json, page and plot.
	out  string
	only string
	// scale is full, short or smoke.
	scale string
}

func main() {
	if len(os.Args) == 4 && os.Args[1] == proxyRole {
		fail(serveProxy(os.Args[2], os.Args[3]))
		return
	}
	var o options
	flag.StringVar(&o.upstream, "upstream", "", "upstream's envd, built elsewhere, to compare with")
	flag.StringVar(&o.images, "images", ".tmp/images", "data folder with built images")
	flag.StringVar(&o.out, "out", ".tmp/bench", "folder for the report")
	flag.StringVar(&o.only, "only", "", "the groups to measure, or their parts, for example envd/output, separated by commas (default: all)")
	flag.StringVar(&o.scale, "scale", "full", "full, short (some minutes), or smoke (next to nothing, to see that everything can be measured)")
	flag.Parse()
	if os.Getenv(worldVariable) == "" {
		os.Exit(enterWorld())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fail(o.run(ctx))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures everything and writes the report. A group that fails does not keep the others from being measured; the
// report says that it is absent.
func (o options) run(ctx context.Context) error {
	scale, known := map[string]bench.Scale{"full": bench.Full(), "short": bench.Short(), "smoke": bench.Smoke()}[o.scale]
	if !known {
		return fmt.Errorf("there is no scale %q", o.scale)
	}
	r := bench.NewReport(scale)
	var failed []error
	for _, group := range o.groups() {
		fmt.Println("bench:", group.name)
		if err := group.measure(ctx, r); err != nil {
			r.Leave(group.name+", in part or whole", err)
			failed = append(failed, fmt.Errorf("%s: %w", group.name, err))
		}
	}
	judge(r)
	return errors.Join(append(failed, o.gate(r), o.write(r))...)
}
