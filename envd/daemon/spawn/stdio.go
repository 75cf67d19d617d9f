package spawn

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// pipeSize is what the output pipes are enlarged to, in bytes: several reads' worth, so that a program does
// not stop while a message is on its way. Where the kernel refuses, the pipe keeps its 64 KiB.
const pipeSize = 256 << 10

// Pipe makes a pipe: the end that the daemon keeps can wait without a thread, the end for the process blocks.
// output says that the process writes. The process's end belongs to the user, so that /dev/stdout can be
// opened again by it.
func Pipe(output bool, c *syscall.Credential) (ours, theirs *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, fmt.Errorf("pipe: %w", err)
	}
	our, their := fds[1], fds[0]
	if output {
		our, their = fds[0], fds[1]
		_, _ = unix.FcntlInt(uintptr(our), unix.F_SETPIPE_SZ, pipeSize)
	}
	_ = unix.SetNonblock(our, true)
	own(their, c)
	return os.NewFile(uintptr(our), "|1"), os.NewFile(uintptr(their), "|0"), nil
}

// own gives the far end of a pipe or terminal to the user. Refused, the process still has it open.
func own(fd int, c *syscall.Credential) {
	if c != nil {
		_ = unix.Fchown(fd, int(c.Uid), -1)
	}
}

// Terminal makes a pseudo-terminal: the side that the daemon keeps, and the side for the process.
func Terminal(cols, rows uint16, c *syscall.Credential) (ours, theirs *os.File, err error) {
	our, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, &os.PathError{Op: "open", Path: "/dev/ptmx", Err: err}
	}
	ours = os.NewFile(uintptr(our), "/dev/ptmx")
	if err := unix.IoctlSetPointerInt(our, unix.TIOCSPTLCK, 0); err != nil {
		_ = ours.Close()
		return nil, nil, os.NewSyscallError("unlock terminal", err)
	}
	their, err := peer(our)
	if err != nil {
		_ = ours.Close()
		return nil, nil, err
	}
	own(their, c)
	theirs = os.NewFile(uintptr(their), "tty")
	if err := Resize(ours, cols, rows); err != nil {
		_ = ours.Close()
		_ = theirs.Close()
		return nil, nil, err
	}
	return ours, theirs, nil
}

// peer opens the side of the process: by descriptor, because the name need not be there; by name where the
// kernel does not know how.
func peer(our int) (int, error) {
	const flags = unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(our), unix.TIOCGPTPEER, flags)
	if errno == 0 {
		return int(fd), nil
	}
	number, err := unix.IoctlGetInt(our, unix.TIOCGPTN)
	if err != nil {
		return -1, os.NewSyscallError("number of the terminal", err)
	}
	name := "/dev/pts/" + strconv.Itoa(number)
	their, err := unix.Open(name, flags, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return their, nil
}

// Resize sets a terminal's size in character cells; the foreground program is told by SIGWINCH.
func Resize(terminal *os.File, cols, rows uint16) error {
	conn, err := terminal.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: cols, Row: rows})
	})
	if err != nil {
		return err
	}
	return os.NewSyscallError("resize terminal", failed)
}
