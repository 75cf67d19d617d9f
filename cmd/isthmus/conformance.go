package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/isthmus/isthmus/conformance/wire"
)

// conformanceCommand checks any E2B-compatible server with the wire suite.
func conformanceCommand(where *location) *cobra.Command {
	target, account := wire.Target{}, live{}
	var only string
	cmd := &cobra.Command{
		Use:   "conformance",
		Short: "Check an E2B-compatible server, request by request",
		Long: "Sends good requests and bad ones of every kind to an E2B-compatible server and says what is answered wrongly.\n" +
			"The key should belong to a team that is otherwise idle: two sandboxes are made for the suite, some more for\n" +
			"single cases, and all of them are killed again. URLs and key are taken from E2B_API_URL, E2B_SANDBOX_URL and\n" +
			"E2B_API_KEY when they are not given.",
		Example: "  isthmus conformance --url http://127.0.0.1:3000 --api-key e2b_…\n" +
			"  isthmus conformance --provider vercel --live --config isthmus.yaml   # the adapter on the account of a pool",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if account.provider != "" {
				c, err := where.read()
				if err != nil {
					return err
				}
				account.template, account.only = target.Template, only
				return conformLive(cmd.Context(), cmd.OutOrStdout(), c, account)
			}
			return conform(cmd.Context(), cmd.OutOrStdout(), target, only)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&target.APIURL, "url", os.Getenv("E2B_API_URL"), "base URL of the control plane")
	flags.StringVar(&target.SandboxURL, "sandbox-url", os.Getenv("E2B_SANDBOX_URL"), "base URL of sandboxes, addressed by headers (default: that of the control plane)")
	flags.StringVar(&target.APIKey, "api-key", "", "API key (default: E2B_API_KEY)")
	flags.StringVar(&target.Template, "template", "base", "template of the sandboxes that are made")
	flags.StringVar(&only, "only", "", "run only the cases whose name contains this")
	flags.StringVar(&account.provider, "provider", "", "a pool of the configuration, or its provider: run the suite of adapters on its account")
	flags.BoolVar(&account.wanted, "live", false, "with --provider: yes, make sandboxes there, which may cost money")
	return cmd
}

// conform runs the suite and prints a line for each case, the failures below it, and the sum at the end.
func conform(ctx context.Context, out io.Writer, target wire.Target, only string) error {
	if target.APIKey == "" {
		target.APIKey = os.Getenv("E2B_API_KEY")
	}
	if target.APIURL == "" || target.APIKey == "" {
		return fmt.Errorf("--url and --api-key are needed, or E2B_API_URL and E2B_API_KEY in the environment")
	}
	passed, failed, err := wire.Run(ctx, target, only, func(r wire.Result) {
		verdict := "PASS"
		if len(r.Failures) > 0 {
			verdict = "FAIL"
		}
		fmt.Fprintf(out, "%s %s (%v)\n", verdict, r.Name, r.Took.Round(time.Millisecond))
		for _, failure := range r.Failures {
			fmt.Fprintf(out, "     %s\n", failure)
		}
	})
	fmt.Fprintf(out, "%d passed, %d failed\n", passed, failed)
	if err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("the server differs from E2B in %d cases", failed)
	}
	return looked(passed, only)
}

// looked refuses a suite of which no case ran: it has shown nothing.
func looked(cases int, only string) error {
	if cases == 0 {
		return fmt.Errorf("no case ran: none has %q in its name (--only)", only)
	}
	return nil
}
