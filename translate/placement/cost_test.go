package placement

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
)

// The cost check of the provider pages: 2 virtual CPUs and 4 GiB for an hour.
func TestEstimates(t *testing.T) {
	size := adapters.Resources{CPU: 2, MemoryMB: 4096, DiskMB: 10240}
	cases := []struct {
		name       string
		price      Price
		idle, busy float64
	}{
		{"e2b", Price{Billing: BillProvisioned, CPUHour: 0.0504, MemoryGiBHour: 0.0162}, 0.166, 0.166},
		{"daytona", Price{Billing: BillProvisioned, CPUHour: 0.0504, MemoryGiBHour: 0.0162, DiskGiBHour: 0.000108, DiskFreeGiB: 5}, 0.166, 0.166},
		{"modal", Price{Billing: BillProvisioned, CPUHour: 0.071, MemoryGiBHour: 0.0242}, 0.239, 0.239},
		{"vercel", Price{Billing: BillActiveCPU, CPUHour: 0.128, MemoryGiBHour: 0.0212}, 0.085, 0.341},
		{"codesandbox", Price{Billing: BillSession, SessionHour: 0.1486}, 0.149, 0.149},
		{"own machines", Price{Billing: BillSession}, 0, 0},
	}
	for _, c := range cases {
		idle := c.price.Estimate(size, GPU{}, time.Hour, 0)
		busy := c.price.Estimate(size, GPU{}, time.Hour, 1)
		require.InDelta(t, c.idle, idle.Hour, 0.001, c.name)
		require.InDelta(t, c.busy, busy.Hour, 0.001, c.name)
		for _, e := range []*Cost{idle, busy} {
			require.True(t, e.Estimate)
			require.Equal(t, "USD", e.Currency)
			require.InDelta(t, c.idle, e.Low, 0.001, c.name)
			require.InDelta(t, c.busy, e.High, 0.001, c.name)
			require.InDelta(t, e.Hour, e.Life, 1e-9)
			require.LessOrEqual(t, e.LifeLow, e.LifeHigh)
		}
	}
	unknown := Price{}
	require.Nil(t, unknown.Estimate(size, GPU{}, time.Hour, 1))
	gpu := Price{Billing: BillProvisioned, GPUHour: map[string]float64{"h100": 3.95}, PerCreate: 0.5}
	require.Nil(t, gpu.Estimate(size, GPU{Kind: "L4", Max: 1}, time.Hour, 1), "this kind has no price")
	require.InDelta(t, 0.5+2*2*3.95, gpu.Estimate(size, GPU{Kind: "H100", Max: 2}, 2*time.Hour, 1).Life, 1e-9)
}
