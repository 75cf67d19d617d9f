//go:build linux

package gvisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/isthmus/isthmus/adapters"
)

// putProgram writes its input to the file $1 with the mode $2, and replaces what is there in one step.
const putProgram = `set -e; mkdir -p "${1%/*}/"; cat > "$1.part"; chmod "$2" "$1.part"; mv -f "$1.part" "$1"`

// Put writes a file in a box.
func (p *place) Put(ctx context.Context, boxID, path string, mode fs.FileMode, content io.Reader) error {
	program, err := p.Exec(ctx, boxID, []string{"/bin/sh", "-c", putProgram, "put", path, fmt.Sprintf("%o", mode.Perm())})
	if err != nil {
		return err
	}
	defer func() { _ = program.Close() }()
	defer context.AfterFunc(ctx, func() { _ = program.Close() })()
	_, err = io.Copy(program, content)
	code := 0
	if err = errors.Join(err, program.CloseWrite()); err == nil {
		code, err = program.Wait(ctx)
	}
	if err == nil && code != 0 {
		err = fmt.Errorf("exit code %d", code)
	}
	if err != nil && ctx.Err() == nil {
		return adapters.Wrap(adapters.KindUnavailable, err, "the file could not be written")
	}
	return ctx.Err()
}

// Exec starts a program in a box as root.
func (p *place) Exec(ctx context.Context, boxID string, argv []string) (adapters.Execution, error) {
	b, err := p.get(boxID)
	if err != nil {
		return nil, err
	}
	if !b.alive() {
		return nil, adapters.Errorf(adapters.KindNotFound, "the sandbox %s has ended", boxID)
	}
	args := append(p.flags(boxID, b.record), "exec", "--pid-file=/proc/self/fd/3", boxID)
	run, err := begin(exec.Command(p.runsc, append(args, argv...)...))
	if err != nil {
		return nil, adapters.Wrap(adapters.KindUnavailable, err, "the program could not be started")
	}
	if err := run.started(ctx); err != nil {
		_ = run.Close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, p.notStarted(b, argv[0], err)
	}
	return run, nil
}

// notStarted says why a program did not start.
func (p *place) notStarted(b *box, program string, cause error) error {
	switch {
	case !b.alive():
		return adapters.Errorf(adapters.KindNotFound, "the sandbox %s has ended", b.record.BoxID)
	case strings.Contains(cause.Error(), "no such file"):
		return adapters.Wrap(adapters.KindPrecondition, cause, "there is no program "+program+" in the sandbox")
	}
	return adapters.Wrap(adapters.KindUnavailable, cause, "the program could not be started in the sandbox")
}

// program is one program in a box, and the runsc that joins us to it.
type program struct {
	in, out *os.File
	begun   *os.File // gets the program's number once it runs
	said    complaint
	cmd     *exec.Cmd
	ended   chan struct{}
	once    sync.Once
}

// complaint keeps the beginning of what runsc and the program say to their standard error.
type complaint struct{ bytes.Buffer }

// maxComplaint is how much of it, in bytes.
const maxComplaint = 4 << 10

// Write keeps what there is room for.
func (c *complaint) Write(p []byte) (int, error) {
	c.Buffer.Write(p[:min(len(p), maxComplaint-c.Len())])
	return len(p), nil
}

// begin starts runsc with pipes.
func begin(cmd *exec.Cmd) (*program, error) {
	var ours, theirs []*os.File
	closeAll := func(files []*os.File) {
		for _, f := range files {
			_ = f.Close()
		}
	}
	defer func() { closeAll(theirs) }()
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(ours)
			return nil, err
		}
		if len(ours) == 0 { // its input
			r, w = w, r
		}
		ours, theirs = append(ours, r), append(theirs, w)
	}
	p := &program{in: ours[0], out: ours[1], begun: ours[2], cmd: cmd, ended: make(chan struct{})}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], &p.said
	cmd.ExtraFiles, cmd.Env = []*os.File{theirs[2]}, []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	if err := cmd.Start(); err != nil {
		closeAll(ours)
		return nil, err
	}
	go func() {
		_ = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// started waits until the program runs, or runsc has ended without that.
func (p *program) started(ctx context.Context) error {
	defer func() { _ = p.begun.Close() }()
	defer context.AfterFunc(ctx, func() { _ = p.begun.Close() })()
	if n, _ := p.begun.Read(make([]byte, 16)); n > 0 {
		return nil
	}
	select {
	case <-p.ended:
		return errors.New(strings.TrimSpace(p.said.String()))
	case <-ctx.Done():
		return ctx.Err()
	}
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

// Close lets go of the program, and ends the runsc that carried its streams. The program ends when it reads or
// writes next.
func (p *program) Close() error {
	p.once.Do(func() {
		_, _ = p.CloseWrite(), p.out.Close()
		_ = p.cmd.Process.Kill()
		<-p.ended
	})
	return nil
}
