//go:build linux

package local_test

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
)

func TestSudo(t *testing.T) {
	l := open(t)
	id := create(t, l)
	for command, want := range map[string]string{
		"sudo whoami":                  "root\n",
		"sudo -u user whoami":          "user\n",
		"sudo -n id -u":                "0\n",
		"sudo sh -c 'exit 9'; echo $?": "9\n",
		"sudo touch /usr/bin/new && stat -c %U /usr/bin/new":                                               "root\n",
		"sudo touch /usr/bin/given && sudo chown user:user /usr/bin/given && stat -c %U:%G /usr/bin/given": "user:user\n",
		"touch /usr/bin/mine 2>/dev/null; echo $?":                                                         "1\n",
		"sudo rm -rf /usr/share/doc && ls /usr/share/doc 2>/dev/null; echo $?":                             "2\n",
	} {
		r := sh(t, l, id, "user", command)
		require.Equal(t, want, r.stdout, "%s: %s", command, r.stderr)
	}
}

// What a box must not be able to do or see, tried by its root.
func TestWhatABoxMustNot(t *testing.T) {
	l := open(t)
	id := create(t, l)
	for name, command := range map[string]string{
		"mount":                 "mount -t tmpfs none /mnt",
		"unmount":               "umount /proc/sys",
		"new namespaces":        "unshare -m true",
		"new user namespace":    "unshare -U true",
		"clone with namespaces": `python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None, use_errno=True).syscall(56, 0x10000000|17, 0, 0, 0, 0) == -1)'`,
		"clone3":                `python3 -c 'import ctypes, sys; l = ctypes.CDLL(None, use_errno=True); l.syscall(435, 0, 0); sys.exit(ctypes.get_errno() == 38)'`,
		"newer calls":           `python3 -c 'import ctypes, sys; l = ctypes.CDLL(None, use_errno=True); l.syscall(467, -100, b"/proc/sys", 0, 0, 0); sys.exit(ctypes.get_errno() == 38)'`,
		"io_uring":              `python3 -c 'import ctypes, sys; l = ctypes.CDLL(None, use_errno=True); l.syscall(425, 1, 0); sys.exit(ctypes.get_errno() == 38)'`,
		"32-bit calls": `python3 -c '
import ctypes, mmap, sys
m = mmap.mmap(-1, 4096, prot=7)
m.write(bytes.fromhex("b814000000cd80c3")) # getpid by int 0x80
call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))
sys.exit(call() == -38)' `,
		"vsock":                 `python3 -c 'import socket; socket.socket(40, socket.SOCK_STREAM)'`,
		"kernel crypto sockets": `python3 -c 'import socket; socket.socket(38, socket.SOCK_SEQPACKET)'`,
		"core pattern":          "echo x > /proc/sys/kernel/core_pattern",
		"powers over a network": `python3 -c 'import socket; socket.socket().setsockopt(1, 33, 1 << 20)'`, // SO_RCVBUFFORCE
		"namespaced sysctl":     "echo 0 > /proc/sys/net/ipv4/ip_forward",
		"sysrq":                 "echo h > /proc/sysrq-trigger && exit 1; test -w /proc/sysrq-trigger && exit 0; exit 1",
		"device nodes":          "mknod /tmp/disk b 7 0",
		"disks":                 "ls /dev/vda /dev/sda /dev/loop0 /dev/kvm /dev/fuse /dev/mem /dev/kmsg /dev/net/tun | grep .",
		"/sys":                  "ls /sys | grep .",
		"kernel command line":   "grep . /proc/cmdline",
		"PID 1's descriptors":   "ls /proc/1/fd",
		"PID 1's environment":   "cat /proc/1/environ",
		"PID 1's root":          "ls /proc/1/root/",
		"PID 1's program":       "cat /proc/1/exe",
		"PID 1's memory":        "head -c 1 /proc/1/mem",
		"PID 1 by ptrace":       `python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(16, 1, 0, 0) != 0)'`,
		"host processes":        "ps -e -o comm= | grep -Ex 'local.test|isthmus|systemd|init'",
		"host paths in mounts":  "grep -E 'isthmus|/tmp/' /proc/mounts",
		"more than loopback":    "grep -vE '^ *(lo:|Inter|face)' /proc/net/dev",
	} {
		t.Run(name, func(t *testing.T) {
			r := sh(t, l, id, "root", command)
			require.NotZero(t, r.code, "stdout: %s", r.stdout)
			require.Empty(t, r.stdout)
		})
	}
	require.Equal(t, "fine\n", sh(t, l, id, "user", "echo fine").stdout)
}

func TestWhatABoxHas(t *testing.T) {
	l := open(t)
	id := create(t, l)
	for command, want := range map[string]string{
		"hostname":          id,
		"cat /etc/hostname": id,
		"getent hosts localhost | head -1 | wc -l":                              "1",
		"echo x > /dev/null && head -c 4 /dev/zero | wc -c":                     "4",
		"stat -c %a /tmp /dev/shm":                                              "1777\n1777",
		"df --output=size -k /dev/shm | tail -1 | xargs":                        "131072",
		"python3 -c 'import multiprocessing as m; print(m.Lock() is not None)'": "True",
		"script -qc 'test -t 0 && echo tty' /dev/null":                          "tty\r",
		"kill -TERM $$; echo not reached":                                       "",
		"kill -9 1; kill -TERM 1; echo alive":                                   "alive",
		"umask":                                                                 "0022",
		"cut -d: -f3- /proc/self/cgroup /proc/1/cgroup | sort -u":               "/",
		"ulimit -c":       "0",
		"stat -c %U:%G ~": "user:user",
		"python3 -c 'import socket; s = socket.create_server((\"127.0.0.1\", 0)); socket.create_connection(s.getsockname()); print(1)'": "1",
		"mkdir -p a/b && mv a c && ls -d c": "c",
		"touch x; python3 -c 'import os; os.setxattr(\"x\", \"user.z\", b\"1\"); print(os.getxattr(\"x\", \"user.z\").decode())'": "1",
	} {
		r := sh(t, l, id, "user", command)
		require.Equal(t, want, strings.TrimSuffix(r.stdout, "\n"), "%s: %s", command, r.stderr)
	}
}

func TestWithoutTheInternetThereIsLoopbackOnly(t *testing.T) {
	l := open(t)
	id := create(t, l)
	outside, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer outside.Close()
	_, port, err := net.SplitHostPort(outside.Addr().String())
	require.NoError(t, err)
	for _, address := range []string{"127.0.0.1 " + port, "198.51.100.1 80", "10.0.2.3 53"} {
		host, port, _ := strings.Cut(address, " ")
		r := sh(t, l, id, "user", "timeout 5 bash -c 'exec 3<>/dev/tcp/"+host+"/"+port+"'; echo $?")
		require.Equal(t, "1\n", r.stdout, "%s: %s", address, r.stderr)
	}
}

func TestTheInternetIsThere(t *testing.T) {
	l := open(t)
	id := create(t, l, func(s *adapters.Spec) { s.Network.Internet = true })
	// The rules are in place when the create returns: a connect is taken, whatever lies behind it.
	r := sh(t, l, id, "user", `python3 -c '
import socket
socket.create_connection(("198.51.100.1", 80), 5)
print("taken")'`)
	require.Equal(t, "taken\n", r.stdout, r.stderr)
}
