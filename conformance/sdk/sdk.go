// Package sdk installs the unmodified clients, at the versions that are written down beside it, for the tests that run
// their suites. What is installed is kept below .tmp of the repository for the next time.
package sdk

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// tries is how often an installation is tried.
const tries = 3

// Installer installs for one work tree, whose top is an absolute path.
type Installer struct {
	Top string
}

// Python installs the Python client once for each content of requirements.txt.
func (i Installer) Python() error {
	requirements := i.path("conformance", "sdk", "python", "requirements.txt")
	return i.Once("python", requirements, func(folder string) error {
		if err := run("python3", "-m", "venv", "--clear", folder); err != nil {
			return err
		}
		return run(filepath.Join(folder, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", "--requirement", requirements)
	})
}

// Node installs the JavaScript client once for each content of the lock file.
func (i Installer) Node() error {
	folder := i.path("conformance", "sdk", "js")
	return i.Once("node", filepath.Join(folder, "package-lock.json"), func(string) error {
		return run("npm", "ci", "--prefix", folder, "--no-audit", "--no-fund", "--silent")
	})
}

// Interpreter is the Python that has the client.
func (i Installer) Interpreter() string { return i.path(".tmp", "python", "bin", "python") }

// Once runs a preparation when the file that it depends on has changed since the last time. It gets a folder of its own.
func (i Installer) Once(name, input string, prepare func(folder string) error) error {
	content, err := os.ReadFile(input)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(i.path(".tmp"), 0o755); err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	stamp, want := i.path(".tmp", name+".stamp"), hex.EncodeToString(sum[:])
	if have, err := os.ReadFile(stamp); err == nil && string(have) == want {
		return nil
	}
	for try := 1; ; try++ { // a registry may fail for a moment
		err := prepare(i.path(".tmp", name))
		if err == nil {
			break
		}
		if try == tries {
			return fmt.Errorf("preparing %s: %w", name, err)
		}
	}
	return os.WriteFile(stamp, []byte(want), 0o644)
}

func (i Installer) path(elements ...string) string {
	return filepath.Join(append([]string{i.Top}, elements...)...)
}

// run runs a program and shows what it said when it fails.
func run(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w\n%s", name, args, err, out)
	}
	return nil
}
