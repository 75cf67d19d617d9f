//go:build linux

package boxes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/isthmus/isthmus/adapters"
)

// Put writes a file in a box.
func (c *Cloud) Put(_ context.Context, boxID, path string, mode fs.FileMode, content io.Reader) error {
	m, err := c.living(boxID)
	if err != nil {
		return err
	}
	if err := put(m.path(path), mode, content); err != nil {
		return adapters.Wrap(adapters.KindUnavailable, err, "the file could not be written")
	}
	return nil
}

// put writes by a process of its own: a box that is just being started would have a file of this process open too, and
// what somebody has open for writing cannot be run.
func put(path string, mode fs.FileMode, content io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	part := path + ".put"
	defer func() { _ = os.Remove(part) }()
	writer := exec.Command("sh", "-c", `cat > "$1"`, "put", part)
	writer.Stdin = content
	if out, err := writer.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return errors.Join(os.Chmod(part, mode), os.Rename(part, path))
}

// path is a path in the box as seen from outside.
func (m *machine) path(path string) string { return fmt.Sprintf("/proc/%d/root%s", m.process(), path) }

// Exec starts a program in a box.
func (c *Cloud) Exec(_ context.Context, boxID string, argv []string) (adapters.Execution, error) {
	m, err := c.living(boxID)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(m.path(argv[0])); err != nil {
		return nil, adapters.Wrap(adapters.KindPrecondition, err, "there is no program "+argv[0]+" in the box")
	}
	args := append([]string{"--target", strconv.Itoa(m.process()), "--mount", "--pid", "--net", "--ipc", "--uts", "--root", "--wd"}, argv...)
	p, err := begin(exec.Command("nsenter", args...))
	if err != nil {
		return nil, adapters.Wrap(adapters.KindUnavailable, err, "the program could not be started")
	}
	return p, nil
}

// program is one program in a box.
type program struct {
	in, out *os.File
	ended   chan struct{}
	cmd     *exec.Cmd
	once    sync.Once
}

func begin(cmd *exec.Cmd) (*program, error) {
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirIn.Close()
	out, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	defer theirOut.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirIn, theirOut, theirOut
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, in.Close(), out.Close())
	}
	p := &program{in: in, out: out, ended: make(chan struct{}), cmd: cmd}
	go func() {
		_ = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// Read reads the program's output.
func (p *program) Read(b []byte) (int, error) { return p.out.Read(b) }

// Write writes to the program's input.
func (p *program) Write(b []byte) (int, error) { return p.in.Write(b) }

// CloseWrite ends the program's input.
func (p *program) CloseWrite() error {
	if err := p.in.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// Wait returns the exit code.
func (p *program) Wait(ctx context.Context) (int, error) {
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// Close lets go of the program.
func (p *program) Close() error {
	p.once.Do(func() { _, _ = p.CloseWrite(), p.out.Close() })
	return nil
}
