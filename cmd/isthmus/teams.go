package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/isthmus/isthmus/server/admin"
)

func teamsCommand(where *location) *cobra.Command {
	cmd := &cobra.Command{Use: "teams", Short: "Create and list teams"}
	cmd.AddCommand(&cobra.Command{
		Use: "create NAME", Short: "Create a team and print its id", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return where.onServer(cmd, false, func(ctx context.Context, client *admin.Client) error {
				team, err := client.CreateTeam(ctx, admin.NewTeam{Name: args[0]})
				if err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), team.ID)
				return nil
			})
		},
	}, &cobra.Command{
		Use: "list", Short: "List the teams", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return where.onServer(cmd, false, func(ctx context.Context, client *admin.Client) error {
				teams, err := client.Teams(ctx)
				if err != nil {
					return err
				}
				t := table(cmd)
				fmt.Fprintln(t, "ID\tNAME\tCREATED")
				for _, team := range teams {
					fmt.Fprintf(t, "%s\t%s\t%s\n", team.ID, team.Name, shortTime(team.CreatedAt))
				}
				return t.Flush()
			})
		},
	})
	return cmd
}
