//go:build linux

package inside

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// What of /proc tells about the host or changes it. The user namespace closes most of it already; these are
// the readable rest, and the files whose writing must not depend on that alone.
var (
	maskedFiles   = []string{"cmdline", "interrupts", "keys", "key-users", "timer_list", "sched_debug", "kcore", "kmsg", "sysrq-trigger", "kallsyms", "modules"}
	maskedFolders = []string{"acpi", "asound", "bus", "driver", "irq", "pressure", "scsi"}
)

// proc mounts a /proc of the box's own process namespace, writes the box's own kernel limits while that can
// be done, and closes what is the host's.
func proc() error {
	at := dirMerged + "/proc"
	if err := directory(at, 0o555); err != nil {
		return err
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if err := unix.Mount("proc", at, "proc", flags, ""); err != nil {
		return fmt.Errorf("/proc (is /proc of the host masked, as in a container without systempaths=unconfined?): %w", err)
	}
	counters(at)
	if err := readOnly(at + "/sys"); err != nil {
		return err
	}
	if err := ownBoot(at); err != nil {
		return err
	}
	for _, name := range maskedFiles {
		if err := mask(at+"/"+name, "/dev/null"); err != nil {
			return err
		}
	}
	for _, name := range maskedFolders {
		if err := maskFolder(at + "/" + name); err != nil {
			return err
		}
	}
	return nothing(dirMerged + "/sys")
}

// counters limits what the kernel counts per user namespace: without this, one box could use up what all
// boxes of a host share. Best effort: an older kernel lacks some.
func counters(proc string) {
	for name, value := range map[string]string{
		"max_inotify_instances": "64", "max_inotify_watches": "65536", "max_fanotify_groups": "0",
		"max_user_namespaces": "0", "max_mnt_namespaces": "0", "max_net_namespaces": "0", "max_pid_namespaces": "0",
		"max_ipc_namespaces": "0", "max_uts_namespaces": "0", "max_cgroup_namespaces": "0", "max_time_namespaces": "0",
	} {
		_ = os.WriteFile(proc+"/sys/user/"+name, []byte(value), 0)
	}
}

func readOnly(path string) error {
	if err := unix.Mount(path, path, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC}
	if err := unix.MountSetattr(unix.AT_FDCWD, path, 0, attr); err != nil {
		return fmt.Errorf("%s read-only: %w", path, err)
	}
	return nil
}

// mask puts a file over another; one that this kernel does not have needs none.
func mask(path, with string) error {
	err := unix.Mount(with, path, "", unix.MS_BIND, "")
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("mask %s: %w", path, err)
}

func maskFolder(path string) error {
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_RDONLY
	err := unix.Mount("tmpfs", path, "tmpfs", flags, "mode=555,size=0")
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("mask %s: %w", path, err)
}

// nothing makes a folder empty and read-only, whatever the image holds there.
func nothing(path string) error {
	if err := directory(path, 0o555); err != nil {
		return err
	}
	return maskFolder(path)
}
