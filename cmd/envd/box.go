//go:build linux

package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/isthmus/isthmus/adapters/local/inside"
	"github.com/isthmus/isthmus/adapters/local/inside/proctree"
	"github.com/isthmus/isthmus/envd/daemon"
)

// runBox is how the local backend runs envd: as PID 1 of a box that it first builds around itself. Its end
// is the end of the box.
func runBox() error {
	return inside.Run(context.Background(), func(ctx context.Context, s inside.Setup, facade, loopback net.Listener) error {
		daemon.BoundMemory(s.Envd)
		if s.Bare != "" {
			return serveBare(ctx, s, facade)
		}
		d, err := daemon.New(s.Envd, daemon.Options{OnDeadline: func() { os.Exit(0) }, Processes: s.Processes, BootID: s.BootID})
		if err != nil {
			return err
		}
		return d.Serve(ctx, facade, loopback)
	})
}

// endTime bounds the search for processes to take along.
const endTime = 5 * time.Second

// serveBare is the box that is none: no process namespace ends with this process, so it ends what it started.
func serveBare(ctx context.Context, s inside.Setup, facade net.Listener) error {
	d, err := daemon.New(s.Envd, daemon.Options{Root: s.Bare, StateDir: filepath.Join(s.Bare, "run"), Orphans: true, Processes: s.Processes})
	if err != nil {
		return err
	}
	err = d.Serve(ctx, facade, nil)
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	return errors.Join(err, proctree.EndBelow(ending, os.Getpid()))
}
