package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/isthmus/isthmus/envd"
)

// versions is what `isthmus version` and `isthmus --version` print.
func versions() string {
	return fmt.Sprintf("isthmus %s, envd %s, %s %s/%s", version, envd.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versions())
			return err
		},
	}
}
