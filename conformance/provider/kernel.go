package provider

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/isthmus/isthmus/envd"
)

// kernel holds the isolation that the adapter states against what two boxes show of their kernels. That nothing is
// shown proves nothing either way.
func kernel(t T, s *Suite) {
	one, done := s.create(t)
	defer done()
	two, done := s.create(t)
	defer done()
	a, b := s.usage(t, one.BoxID), s.usage(t, two.BoxID)
	that(t, a.Kernel != "", "the kernel does not tell its release")
	const slack = 3 * time.Second // of two clocks
	shared := a.BootID != "" && a.BootID == b.BootID && !a.Booted.IsZero() && a.Booted.Sub(b.Booted).Abs() <= slack
	switch isolation := s.provider.Describe().Isolation; {
	case isolation == "gvisor":
		that(t, a.GVisor && b.GVisor, "the isolation is said to be gvisor, and the kernel (%s) does not show itself to be", a.Kernel)
	case slices.Contains([]string{"vm", "microvm"}, isolation):
		that(t, !shared, "the isolation is said to be %s, and two boxes run on one kernel (%s, boot %s)", isolation, a.Kernel, a.BootID)
		that(t, !a.GVisor, "the isolation is said to be %s, and the kernel is gVisor's", isolation)
	}
}

// usage is what a box's envd tells the facade of its machine.
func (s *Suite) usage(t T, id string) envd.Usage {
	t.Helper()
	in := s.reach(t, id)
	defer in.close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, in.base+envd.RouteUsage, nil)
	must(t, err, "usage")
	_, control := s.harness.Secrets(id)
	request.Header.Set(envd.HeaderControl, control)
	response, err := in.RoundTrip(request)
	must(t, err, "usage")
	defer func() { _ = response.Body.Close() }()
	equal(t, http.StatusOK, response.StatusCode, "the status of the usage")
	var u envd.Usage
	must(t, json.NewDecoder(io.LimitReader(response.Body, 1<<16)).Decode(&u), "usage")
	return u
}
