package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local/subid"
)

// goOn is the line that the helper waits for.
const goOn = "go\n"

// powers are what the helper may do as root of its user namespace. Its ids are written after it was started,
// and only ambient capabilities survive an exec that nobody's id makes.
func powers() []uintptr {
	return []uintptr{unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_SETFCAP}
}

// mapped lets the helper carry a step out as the root of a user namespace with the user's whole id range:
// itself as 0, its subordinate ids as the rest. The helper itself waits for the ids: a shell would look at
// its own while they are being written, see two halves, and take nobody's for good.
func (s *Store) mapped(ctx context.Context, step, dir string, stream io.Reader) error {
	if len(s.options.Helper) == 0 {
		return adapters.Errorf(adapters.KindInternal, "images cannot be unpacked: no helper command is set")
	}
	ids, err := subid.Find()
	if err != nil {
		return adapters.Errorf(adapters.KindUnsupported, "images cannot be unpacked: %w", err)
	}
	argv := append(append([]string(nil), s.options.Helper...), step, dir)
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, AmbientCaps: powers()}
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return adapters.Errorf(adapters.KindUnsupported, "images cannot be unpacked: this user may not make user namespaces (`isthmus doctor` says more): %w", err)
	}
	fed := feed(ctx, in, c.Process.Pid, ids, stream)
	if err := c.Wait(); err != nil {
		return errors.Join(fmt.Errorf("%w: %s", err, lastLine(out.Bytes())), ctx.Err(), fed)
	}
	return fed
}

// feed gives the process its ids, the word to go on, and the stream.
func feed(ctx context.Context, in io.WriteCloser, pid int, ids subid.Ranges, stream io.Reader) error {
	defer in.Close()
	if err := ids.Write(ctx, pid); err != nil {
		return err
	}
	if _, err := io.WriteString(in, goOn); err != nil {
		return err
	}
	if stream == nil {
		return nil
	}
	if _, err := io.Copy(in, stream); err != nil && !errors.Is(err, syscall.EPIPE) {
		return err // EPIPE: the helper ended early, and says why itself
	}
	return nil
}

// lastLine is where a program says why it failed.
func lastLine(out []byte) string {
	s := strings.TrimSpace(string(out))
	if len(s) > 2000 {
		s = s[len(s)-2000:]
	}
	return s[strings.LastIndexByte(s, '\n')+1:]
}
