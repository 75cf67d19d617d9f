package store_test

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/store/kv/badger"
)

// BenchmarkListTenThousand lists a page of a team with ten thousand sandboxes: without a filter, and by a key of the
// metadata that one of them has.
func BenchmarkListTenThousand(b *testing.B) {
	const sandboxes, page = 10_000, 100
	engine, err := badger.Open(b.TempDir(), slog.New(slog.DiscardHandler))
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, engine.Close()) })
	s, err := store.Open(b.Context(), engine)
	require.NoError(b, err)
	for i := range sandboxes {
		sb := store.Sandbox{
			ID: fmt.Sprintf("i%020d", i), TeamID: "team", State: store.StateRunning, StartedAt: at(i), EndAt: at(i + 300), Template: "b0000000000000000000",
			Alias: "base", Pool: "local", BoxID: fmt.Sprintf("i%020d", i), CPU: 2, MemoryMB: 1024, DiskMB: 10240, EnvdVersion: "0.6.13", Secure: true,
			Metadata: map[string]string{"user": fmt.Sprint(i % 100), "app": "bench"},
		}
		if i == sandboxes/2 {
			sb.Metadata["rare"] = "yes"
		}
		_, err := s.Sandboxes.Begin(b.Context(), store.Intent{Sandbox: sb})
		require.NoError(b, err)
	}
	for name, filter := range map[string]map[string]string{"page": nil, "rare": {"rare": "yes"}} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				got, err := s.Sandboxes.List(b.Context(), store.SandboxQuery{TeamID: "team", Limit: page, Metadata: filter})
				require.NoError(b, err)
				took = append(took, time.Since(began))
				require.Equal(b, map[string]int{"page": sandboxes, "rare": 1}[name], got.Running)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}
