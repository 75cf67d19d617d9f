package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/server/admin"
)

func envCommand(where *location) *cobra.Command {
	return &cobra.Command{
		Use:   "env",
		Short: "Print what E2B programs need to find the running Isthmus, for eval",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return where.onRunning(cmd, func(ctx context.Context, client *admin.Client) error {
				environment, err := client.Environment(ctx)
				if err != nil {
					return err
				}
				printEnvironment(cmd.OutOrStdout(), environment)
				return nil
			})
		},
	}
}

// printEnvironment writes the line that a shell evaluates. With TLS the domain alone tells every client
// everything, and the URLs, which would override it, are unset. All values but paths are of characters that a
// shell takes as they are.
func printEnvironment(w io.Writer, where admin.Environment) {
	if strings.HasPrefix(where.APIURL, "https:") {
		fmt.Fprintf(w, "unset E2B_API_URL E2B_SANDBOX_URL; export E2B_DOMAIN=%s", where.Domain)
	} else {
		fmt.Fprintf(w, "export E2B_API_URL=%s E2B_SANDBOX_URL=%s", where.APIURL, where.SandboxURL)
	}
	if where.Authority != "" {
		fmt.Fprintf(w, " NODE_EXTRA_CA_CERTS=%s SSL_CERT_FILE=%s", quoted(where.Authority), quoted(where.Bundle))
	}
	if where.APIKey == "" {
		fmt.Fprintln(w, "\n# E2B_API_KEY: a key that `isthmus keys create` has printed")
		return
	}
	fmt.Fprintf(w, " E2B_API_KEY=%s\n", where.APIKey)
}

// printable is the key as serve prints it. One that was given by the environment is somebody's secret already, and what
// serve prints is mostly kept as a log: there the line refers to where the key came from.
func printable(key, given string, terminal bool) string {
	if given != "" && key == given && !terminal {
		return `"$ISTHMUS_API_KEY"`
	}
	return key
}

// isTerminal reports whether somebody reads along.
func isTerminal(out io.Writer) bool {
	file, is := out.(*os.File)
	if !is {
		return false
	}
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return err == nil
}

// quoted is text as one word of a shell.
func quoted(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
