//go:build linux

package local

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/bootstrap/agent"
	"github.com/isthmus/isthmus/adapters/local/images"
	"github.com/isthmus/isthmus/envd"
)

// InstallAgents puts our own programs below a folder, where boxes are started with them: envd, and the layer with
// sudo. A path that is empty means the one that this binary carries.
func InstallAgents(dir, envdPath, sudoPath string) (program, tools string, _ error) {
	program, err := install(agent.Envd, envdPath, filepath.Join(dir, dirAgent), 0o111)
	if err != nil {
		return "", "", err
	}
	if err := checkVersion(program); err != nil {
		return "", "", err
	}
	sudo, err := install(agent.Sudo, sudoPath, filepath.Join(dir, dirAgent), 0o755)
	if err != nil {
		return "", "", err
	}
	tools, err = images.Tools(filepath.Join(dir, dirTools), sudo)
	return program, tools, err
}

// install copies a program to a place where its mode is ours to choose, by its content: boxes that run keep
// the one they were started with, and all boxes of one version share its pages. Envd can be executed there but
// not read, and its owner is nobody in a box; then the kernel keeps /proc/1 closed even to the box's root.
func install(program, configured, dir string, mode os.FileMode) (string, error) {
	sum, err := copyProgram(program, configured, io.Discard)
	if err != nil {
		return "", adapters.Errorf(adapters.KindInvalid, "the program %s cannot be read: run `make build`, or name its path in the configuration: %w", program, err)
	}
	to := filepath.Join(dir, program+"-"+sum)
	if _, err := os.Lstat(to); err == nil {
		return to, nil // also on a disk that has no room for another
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	next, err := os.CreateTemp(dir, "new-*")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(next.Name()) }()
	written, err := copyProgram(program, configured, next)
	if err = errors.Join(err, next.Chmod(mode), next.Close()); err != nil {
		return "", err
	}
	if written != sum {
		return "", adapters.Errorf(adapters.KindUnavailable, "the program %s was changed while it was copied: try again", program)
	}
	return to, os.Rename(next.Name(), to)
}

// copyProgram copies a program and returns the name of its content.
func copyProgram(program, configured string, to io.Writer) (string, error) {
	src, err := source(program, configured)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(to, sum), src)
	return hex.EncodeToString(sum.Sum(nil)[:8]), errors.Join(err, src.Close())
}

// source is the configured program, the one that this binary carries, or the one beside it.
func source(program, configured string) (io.ReadCloser, error) {
	if configured != "" {
		return os.Open(configured)
	}
	carried, err := agent.Open(program, runtime.GOARCH)
	if err == nil {
		return carried, nil
	}
	self, err2 := os.Executable()
	if err2 != nil {
		return nil, err
	}
	beside, err2 := os.Open(filepath.Join(filepath.Dir(self), program))
	if err2 != nil {
		return nil, errors.Join(err, err2)
	}
	return beside, nil
}

// checkVersion refuses an envd that is not of our build.
func checkVersion(path string) error {
	out, err := exec.Command(path, "version").Output()
	if err != nil {
		return adapters.Errorf(adapters.KindInvalid, "envd does not run on this machine: %w", err)
	}
	if got := strings.TrimSpace(string(out)); got != envd.Version {
		return adapters.Errorf(adapters.KindInvalid, "envd is version %q where %q is needed: run `make build`", got, envd.Version)
	}
	return nil
}
