package harness

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
)

// prepareClients installs every old client in a folder of its own, from its registry, by its exact version.
func prepareClients() error {
	clients, err := oldClients()
	if err != nil {
		return err
	}
	var installing errgroup.Group
	installing.SetLimit(4)
	for _, client := range clients {
		installing.Go(client.install)
	}
	return installing.Wait()
}

// install puts the client into its folder, once. A folder without the mark is of a run that was interrupted.
func (c oldClient) install() error {
	folder := c.folder()
	mark := filepath.Join(folder, "installed")
	if _, err := os.Stat(mark); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return err
	}
	install := c.installNode
	if c.family.Program == "python" {
		install = c.installPython
	}
	if err := install(folder); err != nil {
		return err
	}
	return os.WriteFile(mark, nil, 0o644)
}

func (c oldClient) installNode(folder string) error {
	return run("npm", "install", "--prefix", folder, "--no-audit", "--no-fund", "--no-package-lock", "--silent", c.family.Package+"@"+c.version)
}

func (c oldClient) installPython(folder string) error {
	if err := run("python3", "-m", "venv", folder); err != nil {
		return err
	}
	return run(filepath.Join(folder, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", c.family.Package+"=="+c.version)
}
