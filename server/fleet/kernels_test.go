package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/translate/placement"
)

// TestBoxesOnOneKernel has pool a claim machines of their own for boxes that all run on one kernel.
func TestBoxesOnOneKernel(t *testing.T) {
	began := time.Now().UTC().Truncate(time.Second)
	r := startPools(t, func(c *Config) {
		for i := range c.Pools {
			facts(&c.Pools[i], func(p *placement.Pool) { p.Isolation = placement.Isolation{Level: "microvm"} })
		}
	}, "a", "b")
	r.fakes["a"].usage = func(string) envd.Usage { return envd.Usage{Kernel: "6.1", BootID: "one", Booted: began} }
	r.fakes["b"].usage = func(id string) envd.Usage { return envd.Usage{Kernel: "6.1", BootID: id, Booted: began} }

	first := r.create(asking(t, "isolation=microvm"))
	require.Equal(t, "a", first.Pool, "one box alone proves nothing")
	second := r.create(asking(t, "isolation=microvm"))
	require.Equal(t, "b", second.Pool)
	require.Equal(t, 1, r.fakes["a"].count(), "the one that fell short was destroyed")
	decision, err := r.fleet.Decision(t.Context(), second.ID)
	require.NoError(t, err)
	require.Equal(t, placement.FailedPostCheck, decision.Attempts[0].Kind)
	require.Equal(t, []placement.Unmet{{Requirement: "isolation", Wanted: "microvm", Has: "container"}}, decision.Attempts[0].Unmet)
	require.Equal(t, &placement.Measured{Resources: decision.Attempts[0].Seen.Resources, Isolation: "container", Kernel: "6.1", BootID: "one", Shares: first.ID},
		decision.Attempts[0].Seen)
	require.Equal(t, "a", r.create(request()).Pool, "nothing is looked at that nobody required")
}

func TestKernels(t *testing.T) {
	began := time.Now()
	for _, c := range []struct {
		name   string
		usages []envd.Usage
		want   string
	}{
		{"kernels of their own", []envd.Usage{{BootID: "a", Booted: began}, {BootID: "b", Booted: began}}, ""},
		{"one kernel", []envd.Usage{{BootID: "a", Booted: began}, {BootID: "a", Booted: began.Add(time.Second)}}, "container"},
		{"copies of one machine", []envd.Usage{{BootID: "a", Booted: began}, {BootID: "a", Booted: began.Add(time.Minute)}}, ""},
		{"gVisor", []envd.Usage{{BootID: "a", Booted: began}, {BootID: "a", Booted: began, GVisor: true}}, "gvisor"},
		{"no boot id", []envd.Usage{{Booted: began}, {Booted: began}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var k kernels
			var last placement.Measured
			for i, u := range c.usages {
				last = placement.Measured{}
				k.judge(&last, u, string(rune('a'+i)))
			}
			require.Equal(t, c.want, last.Isolation)
			require.Equal(t, adapters.Resources{}, last.Resources)
		})
	}
}
