package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/isthmus/isthmus/server"
	"github.com/isthmus/isthmus/server/admin"
	"github.com/isthmus/isthmus/server/config"
)

// reloading puts a changed configuration in place while Isthmus serves.
type reloading struct {
	mu     sync.Mutex // one at a time
	places *places
	again  func() (config.Config, error)
	server *server.Server
	// started is the configuration that Isthmus was started with.
	started config.Config
	log     *slog.Logger
}

// reload reads the configuration again and puts its pools, ranking, classes and requirements in place: all of it, or
// with an error nothing. It returns the changed fields that wait for a new start.
func (r *reloading) reload(ctx context.Context) (waiting []string, _ error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.again()
	if err != nil {
		return nil, err
	}
	pools, keep, err := r.places.arrange(c)
	if err != nil {
		return nil, err
	}
	err = r.server.Reload(ctx, c, pools)
	if err := errors.Join(err, keep(err == nil)); err != nil {
		return nil, err
	}
	r.log.Info("the configuration was loaded again", "pools", len(pools))
	if waiting = config.NeedsStart(r.started, c); len(waiting) > 0 {
		r.log.Warn("these changed fields of the configuration wait for a new start", "fields", waiting)
	}
	return waiting, nil
}

// onHangup reloads at SIGHUP, until the function that it returns is called.
func (r *reloading) onHangup(ctx context.Context) (stop func()) {
	signals, ended := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGHUP)
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(ended)
		for {
			select {
			case <-ctx.Done():
				return
			case <-signals:
				if _, err := r.reload(ctx); err != nil {
					r.log.Error("the configuration was not loaded again: the old one stays", "err", err)
				}
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		cancel()
		<-ended
	}
}

func reloadCommand(where *location) *cobra.Command {
	return &cobra.Command{
		Use: "reload", Short: "Let the running server load pools, ranking, classes and requirements again", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return where.onRunning(cmd, func(ctx context.Context, client *admin.Client) error {
				waiting, err := client.Reload(ctx)
				if err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), "the configuration is loaded")
				if len(waiting) > 0 {
					fmt.Fprintln(cmd.OutOrStdout(), "waits for a new start, because a reload does not change it:", strings.Join(waiting, ", "))
				}
				return nil
			})
		},
	}
}
