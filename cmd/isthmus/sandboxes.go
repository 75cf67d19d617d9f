package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/isthmus/isthmus/server/admin"
)

func sandboxesCommand(where *location) *cobra.Command {
	cmd := &cobra.Command{Use: "sandboxes", Short: "List and end sandboxes of all teams"}
	cmd.AddCommand(sandboxesList(where), sandboxesShow(where), sandboxesKill(where))
	return cmd
}

func sandboxesList(where *location) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the sandboxes of all teams", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return where.onServer(cmd, false, func(ctx context.Context, client *admin.Client) error {
				list, err := client.Sandboxes(ctx)
				if err != nil {
					return err
				}
				t := table(cmd)
				fmt.Fprintln(t, "ID\tSTATE\tPOOL\tTEMPLATE\tTEAM\tSTARTED\tENDS")
				for _, sb := range list {
					fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", sb.ID, sb.State, sb.Pool, sb.Template, sb.TeamID, shortTime(sb.StartedAt), shortTime(sb.EndAt))
				}
				return t.Flush()
			})
		},
	}
}

func sandboxesShow(where *location) *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Say how it was decided where a sandbox runs, also when it has ended since", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return where.onRunning(cmd, func(ctx context.Context, client *admin.Client) error {
				decision, err := client.Placement(ctx, args[0])
				if err != nil {
					return err
				}
				return printJSON(cmd.OutOrStdout(), decision)
			})
		},
	}
}

func sandboxesKill(where *location) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "kill ID...", Short: "End sandboxes, and return when nothing of them is left",
		Args: func(_ *cobra.Command, args []string) error {
			if all != (len(args) == 0) {
				return errors.New("name the sandboxes to end, or say --all")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return where.onServer(cmd, true, func(ctx context.Context, client *admin.Client) error {
				if all {
					return killAll(ctx, cmd, client)
				}
				var errs []error
				for _, id := range args {
					errs = append(errs, client.Kill(ctx, id))
				}
				return errors.Join(errs...)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "end every sandbox of every team")
	return cmd
}

func killAll(ctx context.Context, cmd *cobra.Command, client *admin.Client) error {
	result, err := client.KillAll(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%d ended\n", result.Killed)
	if len(result.Failed) > 0 {
		return fmt.Errorf("%d are still there: %v", len(result.Failed), result.Failed)
	}
	return nil
}

// shortTime is a time for a table; "-" for none.
func shortTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}
