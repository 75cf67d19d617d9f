package server

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"runtime/metrics"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/server/admin"
	"github.com/isthmus/isthmus/server/fleet"
)

// operatorRoutes is the handler of the operator's listener.
func (s *Server) operatorRoutes(operator *admin.Admin) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.Handle("/", operator.Remote(s.options.AdminToken))
	return mux
}

// metrics answers in the Prometheus text format. A dozen numbers do not need a client library.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	var text bytes.Buffer
	fleetMetrics(&text, s.fleet.Counts())
	poolMetrics(&text, s.fleet.States())
	diskMetrics(&text, s.options.Config.Data)
	processMetrics(&text)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(text.Bytes()) // a client that has gone gets no answer
}

func fleetMetrics(text *bytes.Buffer, c fleet.Counts) {
	single(text, "isthmus_sandboxes_running", "gauge", "Running sandboxes.", float64(c.Reachable))
	single(text, "isthmus_creates_in_flight", "gauge", "Creates in progress.", float64(c.CreatesInFlight))
	labelled(text, "isthmus_creates_total", "counter", "outcome", "Creates by outcome: ok or the kind of error.", c.Creates)
	single(text, "isthmus_create_seconds_total", "counter", "Time of all creates that went well.", c.CreateSeconds)
	labelled(text, "isthmus_ends_total", "counter", "reason", "Ends of sandboxes by reason.", c.Ends)
	ready, claims, misses := map[string]int64{}, map[string]int64{}, map[string]int64{}
	for pool, stock := range c.Stock {
		ready[pool], claims[pool], misses[pool] = stock.Ready, stock.Claims, stock.Misses
	}
	labelled(text, "isthmus_stock_ready", "gauge", "pool", "Boxes that were made ahead and wait.", ready)
	labelled(text, "isthmus_stock_claims_total", "counter", "pool", "Creates that were served by such a box.", claims)
	labelled(text, "isthmus_stock_misses_total", "counter", "pool", "Creates that found none ready.", misses)
	single(text, "isthmus_orphans_total", "counter", "Boxes without a record that were destroyed.", float64(c.Orphans))
}

func diskMetrics(text *bytes.Buffer, folder string) {
	var disk unix.Statfs_t
	if unix.Statfs(folder, &disk) == nil {
		single(text, "isthmus_data_free_bytes", "gauge", "Free room on the data folder's disk.", float64(int64(disk.Bavail)*disk.Frsize))
	}
}

func processMetrics(text *bytes.Buffer) {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(sample)
	single(text, "go_goroutines", "gauge", "Goroutines.", float64(runtime.NumGoroutine()))
	single(text, "go_memory_bytes", "gauge", "Memory mapped by the Go runtime.", float64(sample[0].Value.Uint64()))
}

func single(text *bytes.Buffer, name, kind, help string, value float64) {
	fmt.Fprintf(text, "# HELP %s %s\n# TYPE %s %s\n%s %g\n", name, help, name, kind, name, value)
}

func labelled(text *bytes.Buffer, name, kind, label, help string, values map[string]int64) {
	fmt.Fprintf(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(text, "%s{%s=%q} %d\n", name, label, key, values[key])
	}
}
