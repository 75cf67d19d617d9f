// Command isthmus is an E2B-compatible facade: `isthmus serve` runs it, the other commands look after it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by the linker.
var version = "dev"

func main() {
	// The first signal asks for an orderly stop. From then on signals have their usual effect, so that the
	// second one ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "isthmus:", err)
		os.Exit(1)
	}
}

// command is the tree of commands.
func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "isthmus",
		Short:         "Programs written for E2B run here",
		Version:       versions(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	where := &location{}
	root.PersistentFlags().StringVar(&where.config, "config", "", "configuration file (YAML)")
	root.PersistentFlags().StringVar(&where.data, "data", "", "data folder (default ./data)")
	root.AddCommand(
		serveCommand(where), envCommand(where), doctorCommand(where),
		sandboxesCommand(where), poolsCommand(where), planCommand(where), reloadCommand(where), teamsCommand(where), keysCommand(where), imagesCommand(where),
		tlsCommand(where), backupCommand(where), restoreCommand(where), versionCommand(), imageStepCommand(), conformanceCommand(where), simulateCommand(where), benchCommand(),
	)
	root.SuggestionsMinimumDistance = 2
	explain(root)
	return root
}
