//go:build linux

package vercel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// drive is a drive and what it holds.
type drive struct {
	Drive
	held *content // nil: nothing yet
}

// content is what a drive held at the end of a session, as an archive. It never changes, forks share it, and its file
// has no name: it is gone with the last one that refers to it.
type content struct {
	file *os.File
	size int64
}

// The scripts get the path of a mount, and the one who may write there.
const (
	unpack = `mkdir -p "$1" && find "$1" -mindepth 1 -delete && tar -x -p --numeric-owner -C "$1" -f -`
	fresh  = `mkdir -p "$1" && find "$1" -mindepth 1 -delete && chown "$2": "$1"`
	locked = ` && chown -R 0:0 "$1" && chmod -R a-w "$1"`
	pack   = `tar -c --numeric-owner -C "$1" -f - .; [ $? -le 1 ]` // 1: something changed meanwhile
	empty  = `find "$1" -mindepth 1 -delete`
)

// readOnly is the mode of a mount that shows what a drive held when the session began.
const readOnly = "snapshot"

// mount puts what the drives of a sandbox hold into a box that begins a session.
func (s *Server) mount(ctx context.Context, box *machine.Box, b *sandbox) error {
	for path, how := range s.mountsOf(b) {
		s.mu.Lock()
		one := s.drives[how.Drive]
		var held *content
		if one != nil {
			held = one.held
		}
		s.mu.Unlock()
		script, in := fresh, io.Reader(nil)
		if held != nil {
			script, in = unpack, io.NewSectionReader(held.file, 0, held.size)
		}
		if how.Mode == readOnly {
			script += locked
		}
		if err := pipe(ctx, box, in, io.Discard, script, path, s.config.User); err != nil {
			return fmt.Errorf("mount the drive %s: %w", how.Drive, err)
		}
	}
	return nil
}

// unmount keeps what a session that ends has written to its drives, and takes it out of the files of the sandbox.
func (s *Server) unmount(ctx context.Context, one *session) error {
	var failed error
	for path, how := range s.mountsOf(one.sandbox) {
		if how.Mode != readOnly {
			failed = errors.Join(failed, s.commit(ctx, one.box, path, how.Drive))
		}
		failed = errors.Join(failed, pipe(ctx, one.box, nil, io.Discard, empty, path))
	}
	return failed
}

// commit keeps what is at a path as what a drive holds.
func (s *Server) commit(ctx context.Context, box *machine.Box, path, name string) error {
	file, err := os.CreateTemp("", "isthmus-drive-")
	if err != nil {
		return err
	}
	if err := os.Remove(file.Name()); err != nil {
		return errors.Join(err, file.Close())
	}
	s.mu.Lock()
	one := s.drives[name]
	s.mu.Unlock()
	if one == nil {
		return file.Close()
	}
	into := &bounded{file: file, left: one.MaxSizeBytes}
	if err := pipe(ctx, box, nil, into, pack, path); err != nil {
		return errors.Join(fmt.Errorf("keep the drive %s: %w", name, err), file.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one.held = &content{file, one.MaxSizeBytes - into.left}
	return nil
}

// bounded is a file of a size.
type bounded struct {
	file *os.File
	left int64
}

func (b *bounded) Write(p []byte) (int, error) {
	if int64(len(p)) > b.left {
		return 0, errors.New("the drive is full")
	}
	n, err := b.file.Write(p)
	b.left -= int64(n)
	return n, err
}

// mountsOf are the mounts of a sandbox.
func (s *Server) mountsOf(b *sandbox) map[string]Mount {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(b.info.Mounts)
}

// pipe runs a script as root in a box, between an input and an output.
func pipe(ctx context.Context, box *machine.Box, in io.Reader, out io.Writer, script string, args ...string) error {
	argv := append([]string{"/bin/sh", "-c", script, "sh"}, args...)
	process, err := box.Start(ctx, machine.Command{Argv: argv, Dir: "/", Stdin: in != nil})
	if err != nil {
		return err
	}
	defer process.Close()
	defer context.AfterFunc(ctx, process.Close)()
	var both errgroup.Group
	both.Go(func() error { _, err := io.Copy(out, process.Stdout()); return err })
	both.Go(func() error { _, err := io.Copy(io.Discard, process.Stderr()); return err })
	if in != nil {
		_, err = io.Copy(process.Stdin(), in)
		err = errors.Join(err, process.Stdin().Close())
	}
	if err = errors.Join(err, both.Wait()); err != nil {
		return err
	}
	exit, err := process.Wait(ctx)
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("it ended with %d", exit.Code)
	}
	return err
}
