package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// simulation is a simulated cloud that is about to run.
type simulation struct {
	cloud *machine.Cloud
	// url is where it will be reached, token what its callers present.
	url, token string
	// plan is the account's, in the vendor's words; empty: the vendor's usual one.
	plan string
}

// simulator is the cloud of one vendor.
type simulator struct {
	// serve answers until the listener is closed.
	serve func(net.Listener) error
	// pool is the configuration of a pool that is this cloud, in YAML.
	pool  string
	close func() error
}

// vendors are the clouds that can be simulated: the one place that knows all of them.
func vendors() map[string]func(simulation) (simulator, error) {
	return map[string]func(simulation) (simulator, error){"daytona": simulateDaytona, "modal": simulateModal, "vercel": simulateVercel}
}

func simulateCommand(where *location) *cobra.Command {
	var listen, token, plan string
	names := make([]string, 0, len(vendors()))
	for name := range vendors() {
		names = append(names, name)
	}
	slices.Sort(names)
	cmd := &cobra.Command{
		Use:   "simulate " + strings.Join(names, "|"),
		Short: "Run a cloud of this machine that speaks a vendor's protocol, to rehearse with",
		Long: "Runs a server of a vendor's protocol whose sandboxes are boxes of this machine, so that a pool of the vendor can be\n" +
			"tried, and an outage rehearsed, without an account and without a bill. It needs root, and the base image\n" +
			"(isthmus images build). All sandboxes end with it. The configuration of a pool that is this cloud is printed.",
		Args: cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs), ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := where.read()
			if err != nil {
				return err
			}
			if err := hasData(c.Data); err != nil {
				return err
			}
			dir, err := os.MkdirTemp(c.Data, "simulator-")
			if err != nil {
				return fmt.Errorf("the data folder has no place for a cloud: %w", err)
			}
			found, err := machine.Folder(filepath.Join(c.Data, "images"))
			if err != nil {
				return err
			}
			cloud, err := machine.New(cmd.Context(), machine.Config{Dir: dir, Images: found, Logger: logger(cmd.ErrOrStderr(), false)})
			if err != nil {
				return err
			}
			return errors.Join(simulate(cmd, args[0], listen, simulation{cloud: cloud, token: token, plan: plan}), cloud.Close())
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:4100", "address of the cloud")
	cmd.Flags().StringVar(&token, "token", "simulated", "the only token that it knows")
	cmd.Flags().StringVar(&plan, "plan", "", "the account's plan, whose limits are kept")
	return cmd
}

// simulate serves one vendor's cloud until the command is ended.
func simulate(cmd *cobra.Command, vendor, listen string, s simulation) error {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	s.url = "http://" + listener.Addr().String()
	running, err := vendors()[vendor](s)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	fmt.Fprintf(cmd.OutOrStdout(), "# %s is simulated at %s\n%s", vendor, s.url, running.pool)
	stop := context.AfterFunc(cmd.Context(), func() { _ = listener.Close() })
	defer stop()
	err = running.serve(listener)
	if cmd.Context().Err() != nil {
		err = nil
	}
	return errors.Join(err, running.close())
}

// serveHTTP is how a cloud that is an HTTP handler serves.
func serveHTTP(handler http.Handler) func(net.Listener) error {
	return func(listener net.Listener) error {
		server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
		err := server.Serve(listener)
		return errors.Join(err, server.Close())
	}
}
