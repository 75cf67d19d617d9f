//go:build linux

package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// Copy copies an image that nothing writes to: at once where the file system can share what is written, else what is
// not a hole. When it fails, nothing is left at to.
func Copy(ctx context.Context, to, from string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, target.Close()); err != nil {
			_ = os.Remove(to)
		}
	}()
	if unix.IoctlFileClone(int(target.Fd()), int(source.Fd())) == nil {
		return nil
	}
	if err := target.Truncate(info.Size()); err != nil {
		return err
	}
	return copyData(ctx, target, source)
}

// Grow makes an image larger, and the file system in it. Nothing may have mounted it.
func Grow(ctx context.Context, image string, bytes int64) error {
	if err := os.Truncate(image, bytes); err != nil {
		return err
	}
	if err := tool(ctx, "e2fsck", "-f", "-p", image); err != nil {
		return err
	}
	return tool(ctx, "resize2fs", image)
}

// tool runs a program of e2fsprogs. e2fsck ends with 1 when it has mended something, as after a copy of a disk in use.
func tool(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	if path, err := exec.LookPath("/usr/sbin/" + name); err == nil {
		cmd = exec.CommandContext(ctx, path, args...)
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err == nil || errors.As(err, &exit) && name == "e2fsck" && exit.ExitCode() == 1 {
		return nil
	}
	return fmt.Errorf("%s (package e2fsprogs): %w: %s", name, err, out)
}
