package kubernetes

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	adapter "github.com/isthmus/isthmus/adapters/kubernetes"
	"github.com/isthmus/isthmus/conformance/provider"
)

// testAdapter runs the provider suite for each way to reach pods and to bring envd there, and on gVisor.
func testAdapter(t *testing.T, c *cluster) {
	gvisor := func(config *adapter.Config) { config.RuntimeClass, config.Isolation = "gvisor", "gvisor" }
	class := ""
	volumed := func(config *adapter.Config) { config.StorageClass = class }
	if os.Getenv("ISTHMUS_TEST") != "soak" {
		class = volumes(t, c)
	}
	for _, form := range []struct {
		name     string
		change   []func(*adapter.Config)
		reach    adapter.Reach
		delivery adapter.Delivery
		gate     bool
	}{
		{"as probed", nil, adapter.ReachAddress, adapter.DeliverVolume, true},
		{"port-forward, init container", []func(*adapter.Config){with(adapter.ReachForward, adapter.DeliverInit)}, adapter.ReachForward, adapter.DeliverInit, false},
		{"exec, copied in", []func(*adapter.Config){with(adapter.ReachExec, adapter.DeliverCopy)}, adapter.ReachExec, adapter.DeliverCopy, false},
		{"gVisor as probed", []func(*adapter.Config){gvisor}, adapter.ReachAddress, adapter.DeliverVolume, false},
		{"with volumes", []func(*adapter.Config){volumed}, adapter.ReachAddress, adapter.DeliverVolume, false},
		{"with volumes, exec, copied in", []func(*adapter.Config){volumed, with(adapter.ReachExec, adapter.DeliverCopy)}, adapter.ReachExec, adapter.DeliverCopy, false},
		{"with volumes, gVisor", []func(*adapter.Config){volumed, gvisor}, adapter.ReachAddress, adapter.DeliverVolume, false},
		{"gVisor, exec", []func(*adapter.Config){gvisor, with(adapter.ReachExec, "")}, adapter.ReachExec, adapter.DeliverVolume, false},
	} {
		if os.Getenv("ISTHMUS_TEST") == "soak" && !form.gate {
			fmt.Println("not in the gate, but in make test-kubernetes: the adapter", form.name)
			continue
		}
		t.Run(form.name, func(t *testing.T) {
			open := func() (adapters.Provider, error) { return adapter.Open(t.Context(), c.pool(form.change...)) }
			p, err := adapter.Open(t.Context(), c.pool(form.change...))
			require.NoError(t, err)
			found := p.Findings()
			t.Logf("%+v", found)
			require.Equal(t, form.reach, found.Reach)
			require.Equal(t, form.delivery, found.Delivery)
			suite, err := provider.Open(t.Context(), provider.Harness{
				Provider: p, Secrets: secrets, Reopen: open, AtOnce: 4, Kept: "/srv/kept", Soon: 12 * time.Second, Patience: time.Minute,
				Resources: adapters.Resources{CPU: 1, MemoryMB: 256, DiskMB: 512},
			})
			require.NoError(t, err)
			defer func() { require.NoError(t, suite.Close(context.WithoutCancel(t.Context()))) }()
			for _, one := range suite.Cases() {
				t.Run(one.Name, func(t *testing.T) { one.Run(t, suite) })
			}
		})
	}
	require.Eventually(t, func() bool { return len(c.pods(t)) == 0 }, time.Minute, 100*time.Millisecond, "pods were left")
}

func with(reach adapter.Reach, delivery adapter.Delivery) func(*adapter.Config) {
	return func(config *adapter.Config) { config.Reach, config.Delivery = reach, delivery }
}
