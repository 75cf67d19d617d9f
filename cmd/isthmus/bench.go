package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/isthmus/isthmus/conformance/bench"
)

// benchFlags are what `bench` is told.
type benchFlags struct {
	server            bench.Server
	iterations, burst int
	json              bool
}

// benchCommand measures the time from a create to the end of the first command on any E2B-compatible server.
func benchCommand() *cobra.Command {
	var flags benchFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the time from a create to the first command, on any E2B-compatible server",
		Long: "Makes sandboxes on an E2B-compatible server, runs one command in each and kills them: so many one after the\n" +
			"other, then as many in one burst. The time runs from the create's request to the end of the command. Failures are\n" +
			"counted and have no time. URLs and key are taken from E2B_API_URL, E2B_SANDBOX_URL, E2B_DOMAIN and E2B_API_KEY when\n" +
			"they are not given. On a cloud this costs money.",
		Example: "  isthmus bench --url http://127.0.0.1:3000 --api-key e2b_… --iterations 100 --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.server.APIURL, "url", "", "base URL of the control plane")
	f.StringVar(&flags.server.SandboxURL, "sandbox-url", os.Getenv("E2B_SANDBOX_URL"), "base URL of sandboxes, addressed by headers (default: that of a plain http control plane, else their host names)")
	f.StringVar(&flags.server.APIKey, "api-key", "", "API key (default: E2B_API_KEY)")
	f.StringVar(&flags.server.Template, "template", "base", "template of the sandboxes")
	f.IntVar(&flags.iterations, "iterations", 100, "sandboxes made one after the other")
	f.IntVar(&flags.burst, "burst", 100, "sandboxes made at once")
	f.BoolVar(&flags.json, "json", false, "print JSON instead of a table")
	return cmd
}

func (f benchFlags) run(ctx context.Context, out io.Writer) error {
	s := f.server
	s.Domain = cmp.Or(os.Getenv("E2B_DOMAIN"), "e2b.app")
	s.APIURL = cmp.Or(s.APIURL, os.Getenv("E2B_API_URL"), "https://api."+s.Domain)
	if strings.HasPrefix(s.APIURL, "http:") { // without TLS there are no host names that a resolver knows
		s.SandboxURL = cmp.Or(s.SandboxURL, s.APIURL)
	}
	if s.APIKey = cmp.Or(s.APIKey, os.Getenv("E2B_API_KEY")); s.APIKey == "" {
		return errors.New("--api-key is needed, or E2B_API_KEY in the environment")
	}
	if f.iterations < 0 || f.burst < 0 || f.iterations+f.burst == 0 {
		return errors.New("--iterations and --burst must not be negative, and not both 0")
	}
	s.Client = &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: max(f.burst, 2),
	}}
	defer s.Client.CloseIdleConnections()
	var results []bench.Interactive
	for _, way := range []struct {
		name          string
		count, atOnce int
	}{{"sequential", f.iterations, 1}, {"burst", f.burst, f.burst}} {
		if way.count > 0 {
			results = append(results, s.Measure(ctx, way.name, way.count, way.atOnce))
		}
	}
	if err := printed(out, results, f.json); err != nil {
		return err
	}
	for _, r := range results {
		if r.Succeeded < r.Tried {
			return fmt.Errorf("%d of %d creates or commands of the %s failed", r.Tried-r.Succeeded, r.Tried, r.Way)
		}
	}
	return ctx.Err()
}

func printed(out io.Writer, results []bench.Interactive, asJSON bool) error {
	if !asJSON {
		return bench.PrintInteractive(out, results)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(results)
}
