//go:build linux

package inside

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// devices builds a minimal /dev: the harmless nodes of the host, terminals of the box's own, shared memory.
func devices(sharedMemory int64) error {
	at := dirMerged + "/dev"
	if err := directory(at, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID, "mode=755,size=64k"); err != nil {
		return fmt.Errorf("/dev: %w", err)
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		if err := os.WriteFile(at+"/"+name, nil, 0o666); err != nil {
			return err
		}
		if err := unix.Mount("/dev/"+name, at+"/"+name, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("/dev/%s: %w", name, err)
		}
	}
	if err := terminals(at + "/pts"); err != nil {
		return err
	}
	if err := memory(at+"/shm", sharedMemory); err != nil {
		return err
	}
	for name, target := range map[string]string{
		"ptmx": "pts/ptmx", "fd": "/proc/self/fd",
		"stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(target, at+"/"+name); err != nil {
			return err
		}
	}
	return nil
}

// terminals mounts pseudo terminals of the box's own; group 5 is tty. They are counted for the whole machine
// (kernel.pty.max, 4096), so that a box without a maximum could take those of all others.
func terminals(at string) error {
	if err := os.Mkdir(at, 0o755); err != nil {
		return err
	}
	const flags = unix.MS_NOSUID | unix.MS_NOEXEC
	if err := unix.Mount("devpts", at, "devpts", flags, "newinstance,ptmxmode=0666,mode=620,gid=5,max=128"); err != nil {
		return fmt.Errorf("/dev/pts: %w", err)
	}
	return nil
}

func memory(at string, size int64) error {
	if err := os.Mkdir(at, 0o1777); err != nil {
		return err
	}
	options := "mode=1777,size=" + strconv.FormatInt(size, 10)
	if err := unix.Mount("shm", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("/dev/shm: %w", err)
	}
	return nil
}
