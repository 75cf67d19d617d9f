"""Calls and socket families of the kernel that a sandbox has no business with."""

BOTH = ["user", "root"]
REFUSED = "EPERM|ENOSYS|EACCES"

# Calls by their 32-bit numbers through int 0x80: a filter that looks at 64-bit numbers only lets them pass.
INT80 = """
if ARM:
    say("int 0x80", "not of this machine")
    sys.exit()
import mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex("5389f889f387d1cd805bc3"))
enter = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
calls = {"unshare": (310, 0x40000000), "unshare user": (310, 0x10000000), "setns": (346, 0), "keyctl": (288, 0), "add_key": (286, 0),
         "io_uring_setup": (425, 1), "bpf": (357, 0), "userfaultfd": (374, 0), "perf_event_open": (336, 0), "socket vsock": (359, 40, 1),
         "socket alg": (359, 38, 5), "mount": (21, 0), "umount2": (52, 0), "init_module": (128, 0), "open_by_handle_at": (342, 0), "reboot": (88, 0),
         "swapon": (87, 0), "settimeofday": (79, 0), "fsopen": (430, 0), "open_tree": (428, -100), "clone new user": (120, 0x10000000 | 17), "clone3": (435, 0), "getpid": (20,)}
def one(what, arguments):
    result = enter(*(list(arguments) + [0, 0, 0, 0])[:4])
    if what.startswith("clone") and result == 0: os._exit(0)
    say(what, "ok" if result >= 0 else errno.errorcode[-result])
for what, arguments in calls.items():
    ended = child(one, what, arguments)
    if ended != "ok": say(what, ended)
"""

CASES = [
    {"name": "refused calls", "as_users": BOTH, "expect": REFUSED, "script": """
for flag, kind in ((0x10000000, "user"), (0x20000, "mount"), (0x40000000, "net"), (0x20000000, "pid"), (0x8000000, "ipc"), (0x4000000, "uts"), (0x2000000, "cgroup"), (0x80, "time")):
    say("unshare " + kind, call("unshare", flag))
    def clone(flag=flag, kind=kind):
        LIBC.syscall.restype = ctypes.c_long
        ctypes.set_errno(0)
        result = LIBC.syscall(ctypes.c_long(NUMBERS["clone"][ARM]), ctypes.c_long(flag | 17), ctypes.c_long(0), ctypes.c_long(0), ctypes.c_long(0), ctypes.c_long(0))
        if result == 0: os._exit(0)
        say("clone " + kind, "ok" if result > 0 else errno.errorcode[ctypes.get_errno()])
    if flag != 0x80: child(clone)
say("clone3", call("clone3", struct.pack("QQQQQQQQ", 0x10000000, 0, 0, 0, 17, 0, 0, 0), 64))
for kind in ("user", "mnt", "net", "pid", "ipc", "uts", "cgroup"):
    fd = os.open("/proc/self/ns/" + kind, os.O_RDONLY)
    say("setns " + kind, call("setns", fd, 0))
nothing = ctypes.create_string_buffer(256)
say("init_module", call("init_module", nothing, 16, b""))
say("finit_module", call("finit_module", 0, b"", 0))
say("delete_module", call("delete_module", b"loop", 0))
say("bpf", call("bpf", 0, nothing, 72))
say("perf_event_open", call("perf_event_open", struct.pack("II", 1, 112) + bytes(104), 0, -1, -1, 0))
say("io_uring_setup", call("io_uring_setup", 4, nothing))
say("userfaultfd", call("userfaultfd", 1))
say("kexec_load", call("kexec_load", 0, 0, 0, 0))
say("kexec_file_load", call("kexec_file_load", 0, 0, 0, b"", 0))
say("swapon", call("swapon", b"/home/user/attack/host.json", 0))
say("swapoff", call("swapoff", b"/x"))
say("settimeofday", call("settimeofday", struct.pack("qq", 1, 0), 0))
say("clock_settime", call("clock_settime", 0, struct.pack("qq", 1, 0)))
say("adjtimex", call("adjtimex", struct.pack("I", 0x4000) + bytes(204)))
say("clock_adjtime", call("clock_adjtime", 0, struct.pack("I", 0x4000) + bytes(204)))
say("syslog", call("syslog", 3, nothing, 256))
say("acct", call("acct", b"/tmp/acct"))
say("quotactl", call("quotactl", 0x800001, 0, 0, 0))
say("quotactl_fd", call("quotactl_fd", 0, 0x800001, 0, 0))
say("keyctl", call("keyctl", 0, -3, 1))
say("add_key", call("add_key", b"user", b"k", b"v", 1, -5))
say("request_key", call("request_key", b"user", b"k", 0, -5))
say("lookup_dcookie", call("lookup_dcookie", 0, nothing, 256))
say("vhangup", call("vhangup"))
say("open_by_handle_at", call("open_by_handle_at", 3, nothing, 0))
"""},
    {"name": "reboot ends no machine", "as_users": BOTH, "expect": "EPERM|ENOSYS", "script": """
say("restart", call("reboot", 0xfee1dead, 672274793, 0x1234567, 0))
say("ctrl-alt-del", call("reboot", 0xfee1dead, 672274793, 0, 0))
"""},
    {"name": "refused calls by their 32-bit numbers", "as_users": BOTH, "expect": REFUSED + "|killed by SIG(SYS|SEGV)|not of this machine", "script": INT80},
    {"name": "calls of the x32 ABI", "as_users": BOTH, "expect": REFUSED + "|killed by SIGSYS|not of this machine", "script": """
def x32():
    for nr in (272, 165, 250, 425, 321, 41):
        ctypes.set_errno(0)
        result = LIBC.syscall(ctypes.c_long(nr | 0x40000000), ctypes.c_long(40), ctypes.c_long(1), ctypes.c_long(0))
        say(str(nr), "ok" if result >= 0 else errno.errorcode[ctypes.get_errno()])
say("x32", "not of this machine") if ARM else child(x32)
"""},
    {"name": "socket families", "as_users": BOTH, "expect": "EPERM|EACCES|EAFNOSUPPORT|ESOCKTNOSUPPORT|EPROTONOSUPPORT|EINVAL", "script": """
known = {1: "unix", 2: "inet", 10: "inet6", 16: "netlink"}
for family in range(3, 48):
    if family in known: continue
    outcomes = [attempt(lambda: socket.socket(family, kind, 0).close()) for kind in (1, 2, 3, 5)]
    say(f"family {family}", "ok" if "ok" in outcomes else outcomes[0])
"""},
    {"name": "raw and packet sockets as the user", "as_users": ["user"], "expect": "EPERM|EACCES|EAFNOSUPPORT", "script": """
say("raw", attempt(lambda: socket.socket(2, 3, 255).close()))
say("raw 6", attempt(lambda: socket.socket(10, 3, 255).close()))
say("packet", attempt(lambda: socket.socket(17, 3, 0x300).close()))
"""},
    {"name": "netlink of the packet filter, of xfrm and others", "as_users": BOTH, "expect": "EPERM|EPROTONOSUPPORT|EACCES", "script": """
for protocol in range(1, 32):
    if protocol in (4, 9, 15, 16): continue  # sock_diag, audit, uevent, generic: read by ordinary tools
    say(f"protocol {protocol}", attempt(lambda: socket.socket(16, 3, protocol).close()))
"""},
    {"name": "freeze a file system", "as_users": BOTH, "expect": "EPERM|EOPNOTSUPP|ENOTSUP|ENOTTY|EACCES", "script": """
import fcntl
for path in ("/", "/run", "/dev/shm", "/dev", "/proc", "/home/user"):
    fd = os.open(path, os.O_RDONLY)
    say(path, attempt(fcntl.ioctl, fd, 0xC0045877, 0))
"""},
    {"name": "names of the host", "as_users": ["root"], "expect": "own", "script": """
call("sethostname", b"stolen", 6)
call("setdomainname", b"stolen", 6)
say("host name", "own" if os.uname().nodename != HOST["host_name"] else "of the host")
"""},
]
