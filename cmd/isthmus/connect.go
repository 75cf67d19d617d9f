package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/server/admin"
	"github.com/isthmus/isthmus/server/config"
	"github.com/isthmus/isthmus/server/fleet"
	"github.com/isthmus/isthmus/store"
)

// onServer runs fn with a client of the running server. When none runs it opens the data folder itself; with
// whole also the sandboxes, which fn may then end.
func (l *location) onServer(cmd *cobra.Command, whole bool, fn func(context.Context, *admin.Client) error) error {
	c, err := l.read()
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	client, err := admin.Dial(ctx, c.Data)
	if errors.Is(err, admin.ErrNoServer) {
		return inside(ctx, c, whole, fn)
	}
	if err != nil {
		return err
	}
	return errors.Join(fn(ctx, client), client.Close())
}

// onRunning runs fn with a client of the running server, which there must be.
func (l *location) onRunning(cmd *cobra.Command, fn func(context.Context, *admin.Client) error) error {
	c, err := l.read()
	if err != nil {
		return err
	}
	client, err := admin.Dial(cmd.Context(), c.Data)
	if errors.Is(err, admin.ErrNoServer) {
		return fmt.Errorf("no isthmus runs on the data folder %s: start one with `isthmus serve`, or name its folder with --data", c.Data)
	}
	if err != nil {
		return err
	}
	return errors.Join(fn(cmd.Context(), client), client.Close())
}

// hasData refuses a data folder that is not there.
func hasData(folder string) error {
	if _, err := os.Stat(folder); err != nil {
		return errors.New("there is no data folder " + folder + ": name it with --data, or start `isthmus serve` once")
	}
	return nil
}

// inside does the work of a server in this process for the time of one command.
func inside(ctx context.Context, c config.Config, whole bool, fn func(context.Context, *admin.Client) error) (err error) {
	if err := hasData(c.Data); err != nil {
		return err
	}
	log := logger(os.Stderr, false)
	d, err := openData(ctx, c.Data, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	var sandboxes admin.Fleet = records{d.store}
	if whole {
		f, stop, err := runFleet(ctx, c, d, log)
		if err != nil {
			return err
		}
		defer stop()
		sandboxes = f
	}
	client := admin.New(admin.Config{Store: d.store, Fleet: sandboxes, DataDir: c.Data, Log: log}).Inside()
	return errors.Join(fn(ctx, client), client.Close())
}

// runFleet opens the sandboxes of all pools without serving anybody. stop returns when all has ended.
func runFleet(ctx context.Context, c config.Config, d *data, log *slog.Logger) (_ *fleet.Fleet, stop func(), _ error) {
	c.Local.Warm = nil // nobody comes for what is made ahead
	pools, keep, err := newPlaces(d.secrets, log).arrange(c)
	if err != nil {
		return nil, nil, err
	}
	f, err := fleet.New(fleet.Config{
		Store: d.store, Secrets: d.secrets, Pools: pools, Logger: log,
	})
	if err != nil {
		return nil, nil, errors.Join(err, keep(false))
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- f.Run(running) }()
	<-f.Ready()
	return f, func() { cancel(); <-ended }, nil
}

// records is the fleet of a command that only looks.
type records struct {
	store *store.Store
}

// All implements admin.Fleet.
func (r records) All(ctx context.Context) ([]store.Sandbox, error) { return r.store.Sandboxes.All(ctx) }

// KillAny implements admin.Fleet.
func (r records) KillAny(context.Context, string) error {
	return adapters.Errorf(adapters.KindUnsupported, "no server runs")
}

// table aligns columns.
func table(cmd *cobra.Command) *tabwriter.Writer {
	const padding = 2
	return tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, padding, ' ', 0)
}
