// Package agent holds the programs that are carried into boxes, envd and sudo, for each architecture. The
// build writes them here; without them this package still builds, and the programs are named by path.
package agent

import (
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// The programs.
const (
	Envd = "envd"
	Sudo = "sudo"
)

// ErrAbsent says that this build carries no such program.
var ErrAbsent = errors.New("this build carries no such program: run `make build`")

//go:embed *.gz
var files embed.FS

// Open returns a program for Linux on an architecture, in Go's words: amd64, arm64.
func Open(program, arch string) (io.ReadCloser, error) {
	return open(files, program, arch)
}

func open(files fs.FS, program, arch string) (io.ReadCloser, error) {
	f, err := files.Open(program + "-linux-" + arch + ".gz")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s for %s: %w", program, arch, ErrAbsent)
	}
	if err != nil {
		return nil, err
	}
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s for %s: %w", program, arch, err), f.Close())
	}
	return opened{unpacked, f}, nil
}

// opened closes both of its readers.
type opened struct {
	*gzip.Reader
	packed io.Closer
}

// Close closes the program.
func (p opened) Close() error { return errors.Join(p.Reader.Close(), p.packed.Close()) }
