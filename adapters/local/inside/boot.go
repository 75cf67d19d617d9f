//go:build linux

package inside

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	bootIDFile = "/sys/kernel/random/boot_id" // below /proc
	bootFile   = "boot"                       // in the workbench
)

// bootID is what the kernel calls its start; empty when it does not tell.
func bootID() string {
	text, err := os.ReadFile("/proc" + bootIDFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// ownBoot gives the box a boot id of its own, which is another one after each start, as that of a machine is: programs
// tell by it whether they were started anew. The host's would be the same in all boxes.
func ownBoot(proc string) error {
	id, err := os.ReadFile(proc + "/sys/kernel/random/uuid")
	if err != nil {
		return fmt.Errorf("boot id: %w", err)
	}
	if err := os.WriteFile(bootFile, id, 0o444); err != nil {
		return fmt.Errorf("boot id: %w", err)
	}
	const flags = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC
	path := proc + bootIDFile
	if err := mask(path, bootFile); err != nil {
		return err
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, path, 0, &unix.MountAttr{Attr_set: flags}); err != nil {
		return fmt.Errorf("%s read-only: %w", path, err)
	}
	return nil
}
