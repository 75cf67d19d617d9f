package images

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// What the helper can be asked for.
const (
	helpUnpack = "unpack" // the stream is a tar; it is applied as a layer
	helpFinish = "finish" // the tree becomes one that boxes can start from
	helpCopy   = "copy"   // the stream is the name of a folder, whose content is copied
	helpRemove = "remove" // the tree and its folder are removed
)

// Help is what the helper process does: it waits until it has its ids, then does one of a few steps on a
// folder of the store, as the root of a user namespace. The hidden command that Options.Helper names passes
// its two arguments and its standard input.
func Help(ctx context.Context, step, dir string, stream io.Reader) error {
	in := bufio.NewReader(stream)
	if line, _ := in.ReadString('\n'); line != goOn {
		return errors.New("this command is Isthmus's own, and it was not told to go on")
	}
	return carryOut(ctx, step, dir, in)
}

// carryOut does a step with this process's own rights.
func carryOut(ctx context.Context, step, dir string, stream io.Reader) error {
	switch step {
	case helpUnpack:
		return unpack(dir, stream)
	case helpFinish:
		return finish(dir)
	case helpCopy:
		from, err := io.ReadAll(io.LimitReader(stream, 4096))
		if err != nil {
			return err
		}
		return copyFolder(ctx, string(from), dir)
	case helpRemove:
		return os.RemoveAll(dir)
	}
	return fmt.Errorf("there is no step %q", step)
}

// help carries a step out, in a helper process when this one's own rights are not enough.
func (s *Store) help(ctx context.Context, step, dir string, stream io.Reader) error {
	if os.Geteuid() == 0 {
		return carryOut(ctx, step, dir, canceled{ctx, stream})
	}
	return s.mapped(ctx, step, dir, stream)
}

func (s *Store) unpack(ctx context.Context, dir string, stream io.Reader) error {
	return s.help(ctx, helpUnpack, dir, stream)
}

func (s *Store) finish(ctx context.Context, dir string) error {
	return s.help(ctx, helpFinish, dir, nil)
}

func (s *Store) remove(ctx context.Context, dir string) error {
	return s.help(ctx, helpRemove, dir, nil)
}

// copyFolder copies a tree with owners, modes, times, hard links and attributes, sharing blocks where the
// file system can.
func copyFolder(ctx context.Context, from, to string) error {
	c := exec.CommandContext(ctx, "cp", "-a", "--reflink=auto", "-x", "--", from+"/.", to)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("copying %s: %w: %s", from, err, lastLine(out))
	}
	return nil
}

// canceled is a stream that ends with the context.
type canceled struct {
	ctx    context.Context
	stream io.Reader
}

func (c canceled) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.stream.Read(b)
}
