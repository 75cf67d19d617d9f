package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/isthmus/isthmus/server/admin"
	"github.com/isthmus/isthmus/store"
)

func backupCommand(where *location) *cobra.Command {
	return &cobra.Command{
		Use: "backup FILE", Short: "Write teams, keys and records to a file; Isthmus may run meanwhile", Args: cobra.ExactArgs(1),
		Long: "Writes the whole store to a file. It holds no secret in clear, but also not the file `key` of the data\n" +
			"folder, from which the secrets of running sandboxes are derived: keep a copy of that as well.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return where.onServer(cmd, false, func(ctx context.Context, client *admin.Client) error {
				return writeBackup(ctx, client, args[0])
			})
		},
	}
}

// writeBackup writes aside and renames, so that the file is a whole backup or not there.
func writeBackup(ctx context.Context, client *admin.Client, path string) error {
	part, err := os.CreateTemp(filepath.Dir(path), ".isthmus-backup-*") // mode 0600
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", path, err)
	}
	defer func() { _ = os.Remove(part.Name()) }()
	sealed, err := store.Seal(part)
	if err != nil {
		return err
	}
	if err := client.Backup(ctx, sealed); err != nil {
		return errors.Join(err, part.Close())
	}
	if err := errors.Join(sealed.Close(), part.Sync(), part.Close()); err != nil {
		return err
	}
	return os.Rename(part.Name(), path)
}

func restoreCommand(where *location) *cobra.Command {
	return &cobra.Command{
		Use: "restore FILE", Short: "Bring a backup into a new data folder, or one without teams and keys", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := where.read()
			if err != nil {
				return err
			}
			file, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer func() { _ = file.Close() }()
			stream, err := unseal(file) // before anything is made or written
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			d, err := openData(cmd.Context(), c.Data, logger(cmd.ErrOrStderr(), false))
			if err != nil {
				return err
			}
			if err := errors.Join(load(cmd.Context(), d, stream), d.close()); err != nil {
				return fmt.Errorf("%s could not be brought in: %w", args[0], err)
			}
			return nil
		},
	}
}

// load fills an empty store. Another one would get back the keys that were revoked and the sandboxes that ended since.
func load(ctx context.Context, d *data, backup io.Reader) error {
	teams, err := d.store.Teams.List(ctx)
	if err != nil {
		return err
	}
	if len(teams) > 0 {
		return errors.New("the data folder has teams and keys already: name a new one with --data, or move its folder `store` aside")
	}
	return d.engine.Load(ctx, backup)
}

func unseal(file *os.File) (io.Reader, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return store.Unseal(file, info.Size())
}
