package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/isthmus/isthmus/server"
	"github.com/isthmus/isthmus/server/admin"
	"github.com/isthmus/isthmus/server/auth"
	"github.com/isthmus/isthmus/server/config"
)

// serveFlags are the flags of serve that are not in the configuration, or override it.
type serveFlags struct {
	listen, domain, isolation, envd string
	killOnExit, checkOnly, noBuild  bool
	verbose, processAsRoot          bool
}

func serveCommand(where *location) *cobra.Command {
	var flags serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run Isthmus until it is told to stop",
		Long: "Runs Isthmus. When clients may come it prints the line that tells them where.\n" +
			"SIGTERM and SIGINT stop it and leave sandboxes running; a second signal ends it at once.\n" +
			"SIGHUP loads pools, ranking, classes and requirements again.\n" +
			"ISTHMUS_API_KEY sets an API key of the default team, ISTHMUS_ADMIN_TOKEN opens the operator's listener.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), where, flags, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.listen, "listen", "", "address of the public listener (default 127.0.0.1:3000)")
	f.StringVar(&flags.domain, "domain", "", "domain below which sandboxes have host names")
	f.StringVar(&flags.isolation, "isolation", "", "another tier for sandboxes of this machine: gvisor, or process, which is none")
	f.BoolVar(&flags.processAsRoot, "process-as-root", false, "allow --isolation process as root: sandboxes then own this machine")
	f.StringVar(&flags.envd, "envd", "", "the envd binary (default: the built-in one, or the one beside isthmus)")
	f.BoolVar(&flags.killOnExit, "kill-on-exit", false, "end all sandboxes when stopping")
	f.BoolVar(&flags.checkOnly, "check-config", false, "look at the configuration, name all its faults, and end")
	f.BoolVar(&flags.noBuild, "no-build", false, "do not build the base image when it is missing")
	f.BoolVar(&flags.verbose, "verbose", false, "log more")
	return cmd
}

func serve(ctx context.Context, where *location, flags serveFlags, out, errOut io.Writer) error {
	c, err := flags.read(where)
	secrets, secretsErr := config.ReadSecrets(os.LookupEnv, auth.Valid)
	if err == nil {
		err = checkKeys(c)
	}
	if err := errors.Join(err, secretsErr); err != nil {
		return err
	}
	if flags.checkOnly {
		_, err := fmt.Fprintln(out, "the configuration is valid")
		return err
	}
	log := logger(errOut, flags.verbose)
	if unknown := c.UnknownVariables(os.Environ()); len(unknown) > 0 {
		log.Warn("these variables look like ours and mean nothing: perhaps they are misspelt", "variables", unknown)
	}
	d, err := openData(ctx, c.Data, log)
	if err != nil {
		return err
	}
	again := func() (config.Config, error) { return flags.read(where) }
	return errors.Join(serveData(ctx, c, again, secrets, flags, d, log, out, errOut), d.close())
}

// read reads the configuration, lets flags override it, and checks the whole.
func (f serveFlags) read(where *location) (config.Config, error) {
	c, err := where.read()
	if err != nil {
		return c, err
	}
	f.apply(&c)
	certificateErr := useOwnCertificate(&c)
	return c, errors.Join(c.Check(), certificateErr)
}

func serveData(ctx context.Context, c config.Config, again func() (config.Config, error), secrets config.Secrets, flags serveFlags, d *data, log *slog.Logger, out, errOut io.Writer) error {
	key, err := admin.Prepare(ctx, d.store, c.Data, secrets.APIKey)
	if err != nil {
		return err
	}
	places := newPlaces(d.secrets, log)
	pools, keep, err := places.arrange(c)
	if err != nil {
		return err
	}
	if !flags.noBuild { // it takes minutes: not before all else that can be wrong has been looked at
		if err := buildBase(ctx, c, errOut); err != nil {
			return errors.Join(err, keep(false))
		}
	}
	r := &reloading{places: places, again: again, started: c, log: log}
	r.server, err = server.New(server.Options{
		Config: c, AdminToken: secrets.AdminToken, APIKey: key, Store: d.store, Secrets: d.secrets,
		Pools: pools, Reload: r.reload, KillOnExit: flags.killOnExit, Log: log,
	})
	if err := errors.Join(err, keep(err == nil)); err != nil {
		return err
	}
	defer r.onHangup(ctx)()
	return r.server.Run(ctx, func(where admin.Environment) {
		where.APIKey = printable(where.APIKey, secrets.APIKey, isTerminal(out))
		printEnvironment(out, where)
		fmt.Fprintln(out, "#", server.Mode(c, where))
	})
}

// apply lets flags that were given override the configuration.
func (f serveFlags) apply(c *config.Config) {
	c.Local.ProcessAsRoot = c.Local.ProcessAsRoot || f.processAsRoot
	for _, one := range []struct {
		flag  string
		field *string
	}{{f.listen, &c.Listen}, {f.domain, &c.Domain}, {f.isolation, &c.Local.Isolation}, {f.envd, &c.Local.Envd}} {
		if one.flag != "" {
			*one.field = one.flag
		}
	}
}

func logger(w io.Writer, verbose bool) *slog.Logger {
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}
