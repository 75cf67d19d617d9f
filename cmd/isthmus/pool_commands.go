package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/server/admin"
	"github.com/isthmus/isthmus/server/fleet"
	"github.com/isthmus/isthmus/translate/placement"
)

func poolsCommand(where *location) *cobra.Command {
	var whole bool
	cmd := &cobra.Command{
		Use: "pools", Short: "List the pools, what they can do and how they are doing", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return where.onRunning(cmd, func(ctx context.Context, client *admin.Client) error {
				pools, err := client.Pools(ctx)
				if err != nil {
					return err
				}
				if whole {
					return printJSON(cmd.OutOrStdout(), pools)
				}
				t := table(cmd)
				fmt.Fprintln(t, "POOL\tPROVIDER\tSTATE\tSANDBOXES\tSTARTING\tSUCCESS\tSTART\tISOLATION\tCAPABILITIES")
				for _, pool := range pools {
					printPool(t, pool)
				}
				return errors.Join(t.Flush(), printDrifts(cmd.OutOrStdout(), pools))
			})
		},
	}
	cmd.Flags().BoolVar(&whole, "json", false, "print everything that is known of them, with sources and dates")
	return cmd
}

func printPool(w io.Writer, pool fleet.PoolState) {
	var can []string
	for _, fact := range pool.Capabilities.List() {
		switch {
		case fact.Present() && pool.Doubtful(fact.Feature):
			can = append(can, string(fact.Feature)+"(drifted)")
		case fact.Feature == adapters.FeatureInjectHeaders && fact.Present() && fact.Value != adapters.Yes:
			can = append(can, fmt.Sprintf("%s(%s only)", fact.Feature, fact.Value))
		case fact.Present():
			can = append(can, string(fact.Feature))
		}
	}
	start, success := figuresOf(pool.Live)
	fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s (%s)\t%s\n", pool.Name, pool.Provider, stateOf(pool), pool.Live.Sandboxes,
		pool.Live.Starting, success, start, cmp.Or(pool.Isolation.Level, placement.IsolationUnknown), pool.Isolation.Evidence(), strings.Join(can, " "))
}

// printDrifts says below the table of which capabilities the provider's answers were not understood.
func printDrifts(w io.Writer, pools []fleet.PoolState) error {
	for _, pool := range pools {
		for _, d := range pool.Drifts {
			now := "drifted"
			if !d.Drifted {
				now = "understood again since " + d.Understood.Format(time.RFC3339)
			}
			if _, err := fmt.Fprintf(w, "\npool %s: %s, declared %s: %s. Answers to %s that were not understood: %d, from %s to %s. The last one: %s\n",
				pool.Name, d.Feature, cmp.Or(d.Declared, "nowhere"), now, d.Operation, d.Times, d.First.Format(time.RFC3339), d.Last.Format(time.RFC3339), d.Reason); err != nil {
				return err
			}
		}
	}
	return nil
}

// stateOf says in a few words what a pool lets through.
func stateOf(pool fleet.PoolState) string {
	switch live := pool.Live; {
	case pool.Draining:
		return "draining"
	case live.Unhealthy != "":
		return "unhealthy: " + live.Unhealthy
	case live.Breaker == placement.BreakerOpen, live.Breaker == placement.BreakerHalfOpen:
		if live.Breaker == placement.BreakerOpen {
			return "breaker " + placement.OpenUntil(live.BreakerUntil)
		}
		return "breaker half open"
	case live.RestUntil.After(time.Now()):
		return fmt.Sprintf("rests for %s (%s)", time.Until(live.RestUntil).Round(time.Second), live.RestKind)
	}
	return "open for creates"
}

func planCommand(where *location) *cobra.Command {
	var ask admin.NewPlan
	var whole bool
	cmd := &cobra.Command{
		Use: "plan", Short: "Say where a create would go and why, without creating", Args: cobra.NoArgs,
		Example: "  isthmus plan --require 'isolation=microvm; rank=cost'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return where.onRunning(cmd, func(ctx context.Context, client *admin.Client) error {
				planned, err := client.Plan(ctx, ask)
				if err != nil {
					return err
				}
				if whole {
					return printJSON(cmd.OutOrStdout(), planned)
				}
				return printPlan(cmd, planned)
			})
		},
	}
	cmd.Flags().BoolVar(&whole, "json", false, "print the whole decision, with what was required and every figure")
	cmd.Flags().StringVar(&ask.Template, "template", "base", "template of the sandbox")
	cmd.Flags().StringVar(&ask.Require, "require", "", "requirements, as in the header X-Isthmus-Require")
	cmd.Flags().StringToStringVar(&ask.Metadata, "metadata", nil, "metadata of the sandbox, for requirements isthmus:KEY=VALUE")
	cmd.Flags().StringVar(&ask.Key, "key", "", "id or name of the API key whose policy holds")
	cmd.Flags().IntVar(&ask.Timeout, "timeout", int(5*time.Minute/time.Second), "time to live in seconds")
	return cmd
}

// printJSON shows a record in which every figure counts.
func printJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
