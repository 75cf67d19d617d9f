package main

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
)

// programMode is for root alone to write, and for everybody to run.
const programMode = 0o755

// runInstall copies this program to a path, in one step for whoever looks there. So it gets from an image of its
// own into a folder that another container shares.
func runInstall(args []string) error {
	flags := flag.NewFlagSet("install", flag.ContinueOnError)
	to := flags.String("to", "", "path of the copy")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *to == "" {
		return errors.New("--to is needed: the path of the copy")
	}
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer func() { _ = self.Close() }()
	next, err := os.CreateTemp(filepath.Dir(*to), ".envd-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(next.Name()) }()
	_, err = io.Copy(next, self)
	if err = errors.Join(err, next.Chmod(programMode), next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), *to)
}
