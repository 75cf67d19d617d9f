package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/isthmus/isthmus/server/admin"
	"github.com/isthmus/isthmus/server/config"
	"github.com/isthmus/isthmus/server/fleet"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/store/kv"
	"github.com/isthmus/isthmus/store/kv/badger"
)

// location is which Isthmus a command is about.
type location struct {
	config, data string
}

// read reads the configuration and lets the flag have its way.
func (l *location) read() (config.Config, error) {
	c, err := config.Load(l.config)
	if err != nil {
		var faults config.Faults
		if errors.As(err, &faults) {
			return c, fmt.Errorf("%s has faults:\n%w", l.config, err)
		}
		return c, err
	}
	if l.data != "" {
		c.Data = l.data
	}
	return c, nil
}

// data is an open data folder.
type data struct {
	engine  kv.Engine
	store   *store.Store
	secrets fleet.Secrets
}

// lockTime is how long a store is waited for that is locked though no server answers in its folder. It is long,
// because on a machine with too much to do a killed process takes its time to go.
const lockTime = 15 * time.Second

// answerTime is how long a server that has a store open may take to say so.
const answerTime = 2 * time.Second

// openStore opens the store of a data folder. A server that was just killed can leave its lock, for moments, with a
// child that it was starting; one that answers is not waited for.
func openStore(ctx context.Context, dir string, log *slog.Logger) (kv.Engine, error) {
	ctx, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	for {
		engine, err := badger.Open(filepath.Join(dir, "store"), log)
		if !errors.Is(err, badger.ErrLocked) {
			return engine, err
		}
		if served(ctx, dir) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// served reports whether a server answers in a data folder. That its socket can be connected to proves nothing: a child
// that a killed server was starting has that too, for the same moments.
func served(ctx context.Context, dir string) bool {
	client, err := admin.Dial(ctx, dir)
	if err != nil {
		return false
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	_, err = client.Environment(ctx)
	return err == nil
}

// openData opens the data folder, and makes it when there is none.
func openData(ctx context.Context, dir string, log *slog.Logger) (*data, error) {
	if err := makeFolder(dir, log); err != nil {
		return nil, err
	}
	engine, err := openStore(ctx, dir, log)
	if errors.Is(err, badger.ErrLocked) {
		return nil, fmt.Errorf("another isthmus has the data folder %s open, which may be starting or stopping: try again in a moment, stop it, or name another with --data", dir)
	}
	if err != nil {
		return nil, err
	}
	d := &data{engine: engine}
	if d.store, err = store.Open(ctx, engine); err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	if d.secrets, err = fleet.LoadSecrets(filepath.Join(dir, "key")); err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return d, nil
}

// makeFolder makes the data folder, or one that is there this user's alone.
func makeFolder(dir string, log *slog.Logger) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("the data folder: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		log.Warn("others of this machine can look into the data folder: make it 0700", "folder", dir, "err", err)
	}
	return nil
}

func (d *data) close() error { return d.engine.Close() }
