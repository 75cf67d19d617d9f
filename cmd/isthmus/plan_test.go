package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/server/admin"
	"github.com/isthmus/isthmus/translate/placement"
)

func TestPlanIsATableForPeople(t *testing.T) {
	cmd, out := &cobra.Command{}, &bytes.Buffer{}
	cmd.SetOut(out)
	until := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	require.NoError(t, printPlan(cmd, admin.Planned{
		Decision: placement.Decision{Template: "base", Rank: []string{"cost"}, Candidates: []placement.Considered{
			{Pool: "near", Provider: "local", Place: 1, Isolation: "container", Evidence: "verified",
				Size: adapters.Resources{CPU: 2, MemoryMB: 1024}, Cost: &placement.Cost{Hour: 0.125},
				Live: placement.Live{StartP50: placement.Milliseconds(812 * time.Millisecond), Creates: 4, SuccessRate: 0.75}},
			{Pool: "far", Provider: "modal", Evidence: "provider_reported", Unmet: []placement.Unmet{
				{Requirement: placement.UnmetBreaker, Has: placement.OpenUntil(until), Passing: true},
			}},
		}},
		Refusal: "and a refusal",
	}))
	require.Equal(t, `template base, ranked by cost

PLACE  POOL  PROVIDER  ISOLATION                    REGION  SIZE             USD/HOUR  START  SUCCESS   WHY NOT
1      near  local     container (verified)         -       2 CPU, 1024 MiB  0.1250    812ms  75% of 4  -
-      far   modal     unknown (provider_reported)  -       -                -         -      -         far's breaker is open until 2026-11-30T12:00:00Z, after failures

and a refusal
`, out.String())
}
