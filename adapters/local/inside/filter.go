//go:build linux

package inside

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// namespaces are the clone(2) flags that would make a new namespace; clone3, whose flags a filter cannot
// see, does not exist for the box.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// missing are system calls that the box's kernel seems not to have. The events of io_setup are counted for the
// whole machine (fs.aio-max-nr), so that one box could take those of all others and of the host; programs that
// use it have another way.
var missing = []uint32{
	unix.SYS_CLONE3, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_USERFAULTFD,
	unix.SYS_IO_SETUP,
}

// refused are system calls that reach past the box: mounts, namespaces, keys, modules, clocks, tracing of
// the kernel.
var refused = append([]uint32{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG,
	unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_OPEN_TREE, unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS, unix.SYS_UNSHARE,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT,
	unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_ACCT, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME,
	unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_SYSLOG, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_VMSPLICE,
	unix.SYS_FANOTIFY_INIT,
}, refusedHere...)

// families are the address families that the box may use. Of the others a network namespace does not separate
// some (AF_VSOCK), the kernel loads modules for some, and all widen its surface.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6}

// protocols are those of AF_NETLINK: what ip, ss and the tools for users need. The packet filter and IPsec are
// not among them: the box's root would meet the kernel's most attacked code there, and needs neither.
var protocols = []uint32{
	unix.NETLINK_ROUTE, unix.NETLINK_SOCK_DIAG, unix.NETLINK_AUDIT, unix.NETLINK_KOBJECT_UEVENT, unix.NETLINK_GENERIC,
}

// filter loads the seccomp filter for every thread. It does so as root of the user namespace, without
// no_new_privs, so that set-user-id programs in the box keep working.
func filter() error {
	program := assemble()
	p := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&p)))
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	return nil
}

// The offsets in struct seccomp_data; arguments are little endian on every architecture that we build for.
const (
	offsetNumber    = 0
	offsetArch      = 4
	offsetArgument0 = 16
	offsetArgument2 = 32
)

const (
	load    = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	equal   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	atLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	anyBit  = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	answer  = unix.BPF_RET | unix.BPF_K
)

// The answers.
const (
	allow  = unix.SECCOMP_RET_ALLOW
	denied = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	absent = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)

	noFamily   = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)
	noProtocol = unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT)
)

// newest is the last system call that this list was made with (mseal, the same number everywhere). Later ones
// could be new ways to do what is refused here, as open_tree_attr is; programs take their absence for an
// older kernel. The numbers of x32 lie above it too.
const newest = 462

// assemble writes the program as single tests, each followed by its answer: longer than a search tree, but
// it can be read. A call of another architecture (a 32-bit one by int 0x80, x32) would have other numbers
// and is answered as absent, else it would be the way around the whole list.
func assemble() []unix.SockFilter {
	p := []unix.SockFilter{
		{Code: load, K: offsetArch},
		{Code: equal, K: auditArch, Jt: 1},
		{Code: answer, K: absent},
		{Code: load, K: offsetNumber},
		{Code: atLeast, K: newest + 1, Jf: 1},
		{Code: answer, K: absent},
	}
	p = append(p, answers(missing, absent)...)
	p = append(p, answers(refused, denied)...)
	p = append(p,
		unix.SockFilter{Code: equal, K: unix.SYS_CLONE, Jf: 4},
		unix.SockFilter{Code: load, K: offsetArgument0},
		unix.SockFilter{Code: anyBit, K: namespaces, Jf: 1},
		unix.SockFilter{Code: answer, K: denied},
		unix.SockFilter{Code: answer, K: allow},
		unix.SockFilter{Code: equal, K: unix.SYS_SOCKET, Jt: 2},
		unix.SockFilter{Code: equal, K: unix.SYS_SOCKETPAIR, Jt: 1},
		unix.SockFilter{Code: answer, K: allow},
	)
	return append(p, sockets()...)
}

// sockets is the program for a call that makes a socket: its family, and of AF_NETLINK its protocol.
func sockets() []unix.SockFilter {
	p := append([]unix.SockFilter{{Code: load, K: offsetArgument0}}, answers(families, allow)...)
	p = append(p,
		unix.SockFilter{Code: equal, K: unix.AF_NETLINK, Jt: 1},
		unix.SockFilter{Code: answer, K: noFamily},
		unix.SockFilter{Code: load, K: offsetArgument2},
	)
	p = append(p, answers(protocols, allow)...)
	return append(p, unix.SockFilter{Code: answer, K: noProtocol})
}

// answers compares what was loaded with each value.
func answers(values []uint32, with uint32) []unix.SockFilter {
	p := make([]unix.SockFilter, 0, 2*len(values))
	for _, v := range values {
		p = append(p, unix.SockFilter{Code: equal, K: v, Jf: 1}, unix.SockFilter{Code: answer, K: with})
	}
	return p
}
