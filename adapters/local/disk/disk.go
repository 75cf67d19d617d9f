//go:build linux

// Package disk makes a file system of fixed size for one box: a sparse ext4 image on a loop device that
// detaches itself when the box's mounts are gone.
package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Disk is an attached image. Mount is a detached mount, to be handed to PID 1 and then closed.
type Disk struct {
	Device string // for example /dev/loop3
	Mount  int
}

// Attach puts the image on a free loop device and mounts it, visible nowhere yet.
func Attach(image string) (Disk, error) {
	device, err := attachLoop(image)
	if err != nil {
		return Disk{}, err
	}
	// The open device keeps the image attached until the mount does.
	defer func() { _ = device.Close() }()
	mount, err := mountExt4(device.Name())
	if err != nil {
		return Disk{}, fmt.Errorf("mount the disk image: %w", err)
	}
	return Disk{Device: device.Name(), Mount: mount}, nil
}

// WaitDetached returns when the device no longer holds the image. The kernel lets go of a mount namespace's
// mounts a moment after its last process.
func WaitDetached(ctx context.Context, device, image string) error {
	file := filepath.Join("/sys/block", filepath.Base(device), "loop/backing_file")
	for {
		held, err := os.ReadFile(file)
		if err != nil || !matches(string(held), image) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is still attached: %w", device, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

// matches compares what sysfs shows with the image's path: a line end, and " (deleted)" once the file is gone.
func matches(held, image string) bool {
	for _, form := range []string{image + "\n", image + " (deleted)\n"} {
		if held == form {
			return true
		}
	}
	return false
}

func attachLoop(image string) (*os.File, error) {
	backing, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = backing.Close() }()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("loop devices: %w", err)
	}
	defer func() { _ = control.Close() }()
	config := unix.LoopConfig{Fd: uint32(backing.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
	for {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("free loop device: %w", err)
		}
		device, err := os.OpenFile("/dev/loop"+strconv.Itoa(number), os.O_RDWR, 0)
		if err != nil {
			return nil, fmt.Errorf("loop device: %w", err)
		}
		err = unix.IoctlLoopConfigure(int(device.Fd()), &config)
		if err == nil {
			return device, nil
		}
		_ = device.Close()
		if !errors.Is(err, unix.EBUSY) { // busy: another process was faster, take the next
			return nil, fmt.Errorf("attach the disk image: %w", err)
		}
	}
}

// mountExt4 makes a detached mount. Background zeroing of inode tables would fill the sparse image; barriers
// would make each fsync in a box one of the host's disk, and writing a file out as soon as it replaces another
// (auto_da_alloc) makes that three times as slow, both for data that is gone after a crash of the host anyway.
func mountExt4(device string) (int, error) {
	fs, err := unix.Fsopen("ext4", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(fs) }()
	if err := unix.FsconfigSetString(fs, "source", device); err != nil {
		return -1, err
	}
	for _, option := range []string{"noinit_itable", "nobarrier", "noauto_da_alloc"} {
		if err := unix.FsconfigSetFlag(fs, option); err != nil {
			return -1, fmt.Errorf("option %s: %w", option, err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}
