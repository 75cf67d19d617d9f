package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/isthmus/isthmus/server/admin"
)

func keysCommand(where *location) *cobra.Command {
	cmd := &cobra.Command{Use: "keys", Short: "Create, list and revoke API keys"}
	cmd.AddCommand(keysCreate(where), keysList(where), &cobra.Command{
		Use: "revoke ID", Short: "Make a key invalid at once", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return where.onServer(cmd, false, func(ctx context.Context, client *admin.Client) error {
				return client.RevokeKey(ctx, args[0])
			})
		},
	})
	return cmd
}

func keysCreate(where *location) *cobra.Command {
	var ask admin.NewKey
	cmd := &cobra.Command{
		Use: "create", Short: "Create a key and print it, this once", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return where.onServer(cmd, false, func(ctx context.Context, client *admin.Client) error {
				key, err := client.CreateKey(ctx, ask)
				if err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), key.Key)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&ask.Team, "team", "", "name or id of the team (default: the default team)")
	cmd.Flags().StringVar(&ask.Name, "name", "", "a name for the list of keys")
	return cmd
}

func keysList(where *location) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the keys, without the keys themselves", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return where.onServer(cmd, false, func(ctx context.Context, client *admin.Client) error {
				keys, err := client.Keys(ctx)
				if err != nil {
					return err
				}
				t := table(cmd)
				fmt.Fprintln(t, "ID\tKEY\tTEAM\tNAME\tCREATED")
				for _, key := range keys {
					fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", key.ID, key.Mask, key.Team, key.Name, shortTime(key.CreatedAt))
				}
				return t.Flush()
			})
		},
	}
}
