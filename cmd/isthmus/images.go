package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/isthmus/isthmus/adapters/local/images"
)

// imageStep is the hidden command that an ordinary user's images are unpacked by, in a user namespace.
const imageStep = "image-step"

func imagesCommand(where *location) *cobra.Command {
	cmd := &cobra.Command{Use: "images", Short: "Build, import and list the root file systems that templates name"}
	cmd.AddCommand(&cobra.Command{
		Use: "build [NAME]", Short: "Build the base image from this machine's Debian packages", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := images.Base
			if len(args) == 1 {
				name = args[0]
			}
			return withImages(cmd, where, func(store *images.Store) error {
				image, err := store.Build(cmd.Context(), name, cmd.ErrOrStderr())
				return printImage(cmd, image, err)
			})
		},
	}, &cobra.Command{
		Use: "import NAME PATH", Short: "Make an image of a folder, a tar (also .gz) or an OCI archive", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withImages(cmd, where, func(store *images.Store) error {
				image, err := store.Import(cmd.Context(), args[0], args[1])
				return printImage(cmd, image, err)
			})
		},
	}, &cobra.Command{
		Use: "list", Short: "List the images", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withImages(cmd, where, func(store *images.Store) error { return printImages(cmd, store) })
		},
	})
	return cmd
}

// imageStepCommand is called by this program itself.
func imageStepCommand() *cobra.Command {
	return &cobra.Command{
		Use: imageStep + " STEP FOLDER", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return images.Help(cmd.Context(), args[0], args[1], cmd.InOrStdin())
		},
	}
}

func withImages(cmd *cobra.Command, where *location, fn func(*images.Store) error) error {
	c, err := where.read()
	if err != nil {
		return err
	}
	if err := makeFolder(c.Data, logger(cmd.ErrOrStderr(), false)); err != nil {
		return err
	}
	store, err := openImages(c)
	if err != nil {
		return err
	}
	return fn(store)
}

func printImage(cmd *cobra.Command, image images.Image, err error) error {
	if err == nil {
		fmt.Fprintln(cmd.OutOrStdout(), image.Name, image.ID)
	}
	return err
}

func printImages(cmd *cobra.Command, store *images.Store) error {
	list, err := store.List()
	if err != nil {
		return err
	}
	t := table(cmd)
	fmt.Fprintln(t, "NAME\tID\tSOURCE\tCREATED")
	for _, image := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", image.Name, image.ID, image.Source, shortTime(image.CreatedAt))
	}
	return t.Flush()
}
