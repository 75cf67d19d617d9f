//go:build linux

package inside

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The two folders of a box's writable layer, which the facade makes.
const (
	DirUpper = "u"
	DirWork  = "w"
)

// The root file system is put together in a small tmpfs over a folder that every host has, by names relative
// to it: /proc/mounts in the box then shows nothing of the host's paths, and no path of the host must be
// open to the box's ids.
const (
	workbench   = "/sys"
	dirMerged   = "m"
	dirWritable = "d"
)

// dirLayer is where layer i is mounted.
func dirLayer(i int) string { return "l" + strconv.Itoa(i) }

// files builds the root file system and makes it the only one that this process can reach.
func files(s Setup, d descriptors) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	trees, err := trees(s, d)
	if err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", workbench, "tmpfs", 0, "mode=700,size=64k"); err != nil {
		return fmt.Errorf("workbench: %w", err)
	}
	if err := unix.Chdir(workbench); err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return root(trees) },
		proc,
		func() error { return devices(s.SharedMemory) },
		volatile,
		pivot,
		func() error { return identity(s.Hostname) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// trees returns detached mounts: the writable layer, then the others from the lowest to the highest. A
// folder's descriptor belongs to the facade's mount namespace, so its name is looked up in this one.
func trees(s Setup, d descriptors) ([]int, error) {
	fds := append([]int{d.writable}, d.layers...)
	if s.Mounts {
		return fds, nil
	}
	for i, fd := range fds {
		name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		if err != nil {
			return nil, err
		}
		tree, err := unix.OpenTree(unix.AT_FDCWD, name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			return nil, fmt.Errorf("layer %d: %w", i, err)
		}
		_ = unix.Close(fd)
		fds[i] = tree
	}
	return fds, nil
}

// root mounts the writable layer over the others. userxattr is what lets a user namespace remove a folder
// of a lower layer.
func root(trees []int) error {
	if err := attach(trees[0], dirWritable); err != nil {
		return fmt.Errorf("writable layer: %w", err)
	}
	var lowers []string
	for i, fd := range trees[1:] {
		if err := attach(fd, dirLayer(i)); err != nil {
			return fmt.Errorf("layer %d: %w", i, err)
		}
		lowers = append([]string{dirLayer(i)}, lowers...) // overlayfs lists the highest first
	}
	if err := os.Mkdir(dirMerged, 0o755); err != nil {
		return err
	}
	options := "lowerdir=" + strings.Join(lowers, ":") +
		",upperdir=" + dirWritable + "/" + DirUpper + ",workdir=" + dirWritable + "/" + DirWork + ",userxattr"
	if err := unix.Mount("overlay", dirMerged, "overlay", 0, options); err != nil {
		return fmt.Errorf("overlay: %w", err)
	}
	return nil
}

// attach puts a detached mount at a new folder and closes its descriptor.
func attach(tree int, at string) error {
	defer func() { _ = unix.Close(tree) }()
	if err := os.Mkdir(at, 0o755); err != nil {
		return err
	}
	return unix.MoveMount(tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// volatile mounts what is new at each start. /tmp is not among it: it belongs to the disk, as on E2B.
func volatile() error {
	if err := directory(dirMerged+"/run", 0o755); err != nil {
		return err
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV
	if err := unix.Mount("tmpfs", dirMerged+"/run", "tmpfs", flags, "mode=755,size=64m"); err != nil {
		return fmt.Errorf("/run: %w", err)
	}
	if err := os.Mkdir(dirMerged+"/run/lock", 0o777); err != nil {
		return err
	}
	return os.Chmod(dirMerged+"/run/lock", 0o777|os.ModeSticky)
}

// pivot makes the merged tree the root and lets the old one go.
func pivot() error {
	if err := unix.Chdir(dirMerged); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("detach the old root: %w", err)
	}
	return unix.Chdir("/")
}

// directory makes sure that a real folder is there, never following a link that an image may hold.
func directory(path string, mode os.FileMode) error {
	st, err := os.Lstat(path)
	switch {
	case err == nil && st.IsDir():
		return nil
	case err == nil:
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}
