package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/isthmus/isthmus/conformance/sdk"
)

// repository is the top of the work tree, seen from this package.
const repository = "../.."

// top is the absolute path of a file of the repository.
func top(elements ...string) string {
	path, err := filepath.Abs(filepath.Join(append([]string{repository}, elements...)...))
	if err != nil {
		panic(fmt.Sprintf("harness: no working directory: %v", err))
	}
	return path
}

// prepare gets what comes from the real network, before the world is entered: the clients, at the versions that
// are written down, and the base image. Everything is kept below .tmp for the next time.
func prepare() error {
	if err := os.MkdirAll(top(".tmp"), 0o755); err != nil {
		return err
	}
	preparations := []func() error{installer().Python, installer().Node, prepareImages}
	if part() == "clients" {
		preparations = append(preparations, prepareClients)
	}
	if part() == "clients" || part() == "modal" {
		preparations = append(preparations, prepareModal)
	}
	if part() == "clients" || part() == "vercel" {
		preparations = append(preparations, prepareVercel)
	}
	if part() == "clients" || part() == "daytona" {
		preparations = append(preparations, prepareDaytona)
	}
	var preparing errgroup.Group // they wait for the network
	preparing.SetLimit(4)
	for _, one := range preparations {
		preparing.Go(one)
	}
	return preparing.Wait()
}

// installer keeps the newest clients.
func installer() sdk.Installer { return sdk.Installer{Top: top()} }

// python is the interpreter with the client.
func python() string { return installer().Interpreter() }

// prepareImages builds the base image, which the facades of all cases share.
func prepareImages() error {
	if os.Getenv("ISTHMUS_TEST_IMAGES") != "" {
		return nil
	}
	return run(top("bin", "isthmus"), "images", "build", "base", "--data", imagesFolder())
}

// imagesFolder is the data folder whose images the facades share.
func imagesFolder() string {
	if folder := os.Getenv("ISTHMUS_TEST_IMAGES"); folder != "" {
		return folder
	}
	return top(".tmp", "images")
}

// once runs a preparation when the file that it depends on has changed since the last time.
func once(name, input string, prepare func(folder string) error) error {
	return installer().Once(name, input, prepare)
}

// run runs a program and shows what it said when it fails.
func run(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w\n%s", name, args, err, out)
	}
	return nil
}
