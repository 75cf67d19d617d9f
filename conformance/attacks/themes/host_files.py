"""Files of the host: by path, by /proc, by links, devices, mounts and handles."""

import os

from world import required

BOTH = ["user", "root"]
REFUSED = "EPERM|EACCES|ENOENT|ENOSYS|EROFS|ENXIO|ENODEV|ENOTDIR|ELOOP|EINVAL"


def image_tree(world):
    """Walks the whole tree inside, and names what the image does not have."""
    image = required("ATTACKS_IMAGE")
    inside = world.run("""
for at, folders, files in os.walk("/"):
    if at.split("/")[1] in ("proc", "dev", "sys", "run"):
        folders[:] = []
        continue
    for entry in folders + files:
        print(os.path.join(at, entry))
""")
    written = ("/home/user", "/tmp/", "/usr/bin/sudo", "/etc/resolv.conf", "/etc/hosts", "/etc/hostname", "/etc/sudoers")
    strange = [path for path in inside if not path.startswith(written) and not os.path.lexists(image + path)]
    return [f"{path}: not of the image" for path in strange[:20]] or [f"{len(inside)} paths: all of the image"]


def image_contents(world):
    """Reads small files of /etc inside and compares them with the image's and the host's."""
    image, lines = required("ATTACKS_IMAGE"), []
    for name in ("shadow", "passwd", "group", "fstab", "machine-id", "hostname", "ssh/sshd_config"):
        inside = "\n".join(world.run(f"""
try: print(open("/etc/{name}").read())
except OSError: pass
""")).strip()
        host = open(f"/etc/{name}").read().strip() if os.path.exists(f"/etc/{name}") else ""
        of_image = open(f"{image}/etc/{name}").read().strip() if os.path.exists(f"{image}/etc/{name}") else ""
        same = bool(inside) and inside == host and inside != of_image
        lines.append(f"/etc/{name}: {'the one of the host' if same else 'own'}")
    return lines


CASES = [
    {"name": "every path inside is of the image", "as_users": ["root"], "do": image_tree, "expect": "all of the image"},
    {"name": "the files of /etc are not the host's", "as_users": ["root"], "do": image_contents, "expect": "own"},
    {"name": "bait, data folder and secrets by path", "as_users": BOTH, "expect": REFUSED, "script": """
data = HOST["data"]
for path in (HOST["file"], data, data + "/key", data + "/api-key", data + "/store", data + "/local", data + "/isthmus.sock"):
    say(path, attempt(os.stat, path))
"""},
    {"name": "bait through /proc/N/{root,cwd,fd}", "as_users": BOTH, "expect": REFUSED, "script": """
for pid in ("1", "self", "thread-self"):
    for way in (f"/proc/{pid}/root", f"/proc/{pid}/cwd/../../../../../..", f"/proc/{pid}/task/{pid}/root"):
        say(way, attempt(read, way + HOST["file"]))
    for number in range(0, 40):
        for path in ("", "/.." * 12 + HOST["file"], HOST["file"]):
            if not path and pid != "1": continue  # its own descriptors
            say(f"/proc/{pid}/fd/{number}{path}", attempt(touch, f"/proc/{pid}/fd/{number}{path}", os.O_RDONLY))
"""},
    {"name": "what PID 1 has open and mapped", "as_users": BOTH, "expect": "EACCES|EPERM", "script": """
for entry in ("environ", "mem", "exe", "maps", "auxv", "stack", "syscall", "pagemap", "smaps", "map_files", "fd", "ns", "io", "personality"):
    path = "/proc/1/" + entry
    say(path, attempt(os.listdir if entry in ("fd", "ns", "map_files") else read, path))
for thread in os.listdir("/proc/1/task"):
    for entry in ("environ", "mem", "exe", "maps", "root/etc", "cwd"):
        say(f"task {entry}", attempt(os.readlink if entry in ("exe", "cwd") else read, f"/proc/1/task/{thread}/{entry}"))
for entry in ("root", "cwd", "exe"):
    say("link " + entry, attempt(os.readlink, "/proc/1/" + entry))
for fd in range(64):
    say(f"fd {fd}", attempt(touch, f"/proc/1/fd/{fd}", os.O_RDWR))
"""},
    {"name": "kernel memory and logs", "as_users": BOTH, "expect": REFUSED + "|empty", "script": """
for path in ("/proc/kcore", "/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/proc/vmallocinfo", "/proc/slabinfo", "/proc/kpagecount", "/proc/kpageflags", "/proc/pagetypeinfo"):
    say(path, attempt(read, path))
for path in ("/proc/kmsg", "/proc/kallsyms", "/proc/keys", "/proc/key-users", "/proc/timer_list", "/proc/cmdline", "/proc/interrupts", "/proc/sched_debug"):
    outcome = attempt(read, path)
    say(path, "empty" if outcome == "ok" and not read(path) else outcome)
say("iomem", "empty" if not any(int(line.split("-")[0], 16) for line in open("/proc/iomem")) else "addresses")
"""},
    {"name": "every file of /proc that could be written", "as_users": BOTH, "expect": "none", "script": """
found = []
for at, folders, files in os.walk("/proc"):
    folders[:] = [f for f in folders if not (at == "/proc" and (f.isdigit() or f in ("self", "thread-self")))]
    for entry in files:
        path = os.path.join(at, entry)
        if attempt(touch, path, os.O_WRONLY) == "ok":
            st = os.stat(path)
            if path != "/proc/mounts" and st.st_rdev != os.stat("/dev/null").st_rdev:
                found.append(path)
for path in found: say("writable", path)
if not found: say("writable", "none")
"""},
    {"name": "sysctls and triggers of the whole machine", "as_users": BOTH, "expect": REFUSED, "script": """
for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hotplug", "/proc/sys/fs/binfmt_misc/register",
             "/proc/sys/vm/drop_caches", "/proc/sys/vm/overcommit_memory", "/proc/sys/fs/file-max", "/proc/sys/kernel/panic", "/proc/sys/kernel/ns_last_pid",
             "/proc/sys/net/ipv4/ip_forward", "/proc/sys/user/max_user_namespaces", "/proc/sys/user/max_inotify_instances", "/proc/sysrq-trigger", "/proc/mtrr", "/proc/irq/default_smp_affinity",
             "/proc/sys/kernel/randomize_va_space", "/proc/sys/net/core/bpf_jit_enable", "/proc/scsi/scsi", "/proc/acpi/wakeup", "/proc/self/loginuid_"):
    say(path, attempt(touch, path, os.O_WRONLY))
for path in ("/sys/kernel/uevent_helper", "/sys/fs/cgroup", "/sys/kernel/debug", "/sys/firmware", "/sys/module", "/sys/fs/cgroup/release_agent", "/sys/power/state"):
    say(path, attempt(os.stat, path))
"""},
    {"name": "device nodes", "as_users": BOTH, "expect": REFUSED, "script": """
disks = [(int(l.split()[0]), int(l.split()[1])) for l in open("/proc/partitions").read().splitlines()[2:]]
for major, minor in disks[:4] + [(1, 1), (1, 2), (1, 4), (10, 200), (10, 229), (10, 232), (7, 0), (10, 237), (5, 1)]:
    for folder in ("/tmp", "/dev", "/dev/shm", "/run", "/home/user"):
        for kind in (0o060600, 0o020600):
            path = f"{folder}/node{major}.{minor}"
            outcome = attempt(os.mknod, path, kind, os.makedev(major, minor))
            if outcome == "ok": outcome = attempt(touch, path, os.O_RDONLY)
            say(f"{path} {kind:o}", outcome)
for path in ("/dev/kvm", "/dev/fuse", "/dev/net/tun", "/dev/loop0", "/dev/loop-control", "/dev/vda", "/dev/vsock", "/dev/vhost-net", "/dev/hwrng", "/dev/console", "/dev/tty0", "/dev/ttyS0", "/dev/userfaultfd", "/dev/snapshot", "/dev/watchdog"):
    say(path, attempt(touch, path, os.O_RDWR))
"""},
    {"name": "handles of files of the host", "as_users": BOTH, "expect": "EPERM|ENOSYS|ESTALE|EOPNOTSUPP", "script": """
for path in ("/", "/dev/null", "/proc", "/run", "/dev/shm"):
    directory = os.open(path, os.O_RDONLY)
    for inode in (2, 1, 12, 128):
        for kind, body in ((1, struct.pack("II", inode, 0)), (0x81, struct.pack("QI", inode, 0)), (1, struct.pack("IQ", inode, 0))):
            handle = struct.pack("Ii", len(body), kind) + body
            say(f"{path} inode {inode}", call("open_by_handle_at", directory, handle, os.O_RDONLY))
"""},
    {"name": "overlay attributes that redirect a folder", "as_users": BOTH, "expect": "EPERM|EOPNOTSUPP|ENOTSUP|ok, and without effect", "script": """
os.makedirs("/home/user/r", exist_ok=True)
for key, value in (("user.overlay.redirect", b"/../../../.."), ("user.overlay.opaque", b"y"), ("user.overlay.metacopy", b""), ("user.overlay.origin", b"x"), ("trusted.overlay.redirect", b"/..")):
    outcome = attempt(os.setxattr, "/home/user/r", key, value)
    if outcome == "ok":
        outcome = "ok, and without effect" if not os.listdir("/home/user/r") else "redirected"
    say(key, outcome)
"""},
    {"name": "mount, by every call", "as_users": BOTH, "expect": "EPERM|ENOSYS|EACCES", "script": """
def path(text): return ctypes.c_char_p(text.encode())
os.makedirs("/home/user/m", exist_ok=True)
target = path("/home/user/m")
for kind in ("proc", "sysfs", "tmpfs", "devtmpfs", "cgroup2", "cgroup", "overlay", "ext4", "mqueue", "binfmt_misc", "debugfs", "fuse", "devpts", "securityfs", "tracefs"):
    say("mount " + kind, call("mount", path("none"), target, path(kind), 0, 0))
say("bind", call("mount", path("/proc/1/root"), target, path(""), 4096, 0))
say("bind /", call("mount", path("/"), target, path(""), 4096, 0))
say("remount /proc/sys", call("mount", path("none"), path("/proc/sys"), path(""), 32 | 4096, 0))
say("propagation", call("mount", path("none"), path("/"), path(""), 1 << 20, 0))
for mounted in ("/proc/sys", "/proc/cmdline", "/proc/kcore", "/sys", "/proc/irq", "/proc", "/dev", "/run"):
    say("umount " + mounted, call("umount2", path(mounted), 2))
say("open_tree", call("open_tree", -100, path("/"), 1))
say("open_tree_attr", call("open_tree_attr", -100, path("/"), 1, 0, 0))
say("fsopen", call("fsopen", path("proc"), 0))
say("fspick", call("fspick", -100, path("/proc/sys"), 0))
say("fsmount", call("fsmount", 0, 0, 0))
say("move_mount", call("move_mount", -100, path("/proc"), -100, target, 0))
say("mount_setattr", call("mount_setattr", -100, path("/proc/sys"), 0, struct.pack("QQQQ", 0, 1, 0, 0), 32))
for attributes in ((1, 0), (0, 2), (0, 4), (0, 8), (0, 1)):
    say(f"open_tree_attr without a copy {attributes}", call("open_tree_attr", -100, path("/proc/sys"), 0, struct.pack("QQQQ", *attributes, 0, 0), 32))
say("/proc/sys for writing after that", attempt(touch, "/proc/sys/user/max_mnt_namespaces", os.O_WRONLY).replace("EROFS", "EACCES"))
say("pivot_root", call("pivot_root", path("."), path(".")))
"""},
    {"name": "chroot that leaves the root", "as_users": BOTH, "expect": "EPERM|ENOENT|own root", "script": """
top = os.open("/", os.O_RDONLY)
os.makedirs("/home/user/jail", exist_ok=True)
outcome = attempt(os.chroot, "/home/user/jail")
if outcome == "ok":
    os.fchdir(top)
    for _ in range(64): os.chdir("..")
    attempt(os.chroot, ".")
    outcome = attempt(os.stat, HOST["file"])
    say("the bait", outcome)
    say("root", "own root" if os.path.exists("/home/user/attack") else "another root")
else:
    say("chroot", outcome)
"""},
    {"name": "shared memory and abstract sockets of the host", "as_users": BOTH, "expect": "ENOENT|ECONNREFUSED", "script": """
LIBC.shmget(HOST["key"], 4096, 0)
say("shmget", errno.errorcode.get(ctypes.get_errno(), "ok"))
connection = socket.socket(socket.AF_UNIX)
say("abstract", attempt(connection.connect, "\\0" + HOST["marker"]))
"""},
    {"name": "masks taken off by open_tree_attr", "as_users": BOTH, "expect": "EPERM|ENOSYS|EACCES|ENOENT", "script": """
# The newest way to change a mount, without mount_setattr: /proc/sys for writing, the limits raised, a copy of /proc without masks.
attributes = struct.pack("QQQQ", 0, 1, 0, 0)
say("change", call("open_tree_attr", -100, b"/proc/sys", 0, attributes, 32))
def write(path, value):
    with open(path, "w") as file: file.write(value)
for limit in ("max_mnt_namespaces", "max_user_namespaces", "max_inotify_instances"):
    say("raise " + limit, attempt(write, "/proc/sys/user/" + limit, "1000").replace("EROFS", "EACCES"))
say("core_pattern", attempt(write, "/proc/sys/kernel/core_pattern", "core").replace("EROFS", "EACCES"))
LIBC.syscall.restype = ctypes.c_long
copy = LIBC.syscall(ctypes.c_long(NUMBERS["open_tree_attr"][ARM]), ctypes.c_long(-100), b"/proc", ctypes.c_long(1), attributes, ctypes.c_long(32))
say("copy", "ok" if copy >= 0 else "EPERM")
if copy >= 0:
    for name in ("cmdline", "kallsyms", "keys", "interrupts", "timer_list"):
        try:
            fd = os.open(name, os.O_RDONLY, dir_fd=copy)
            got = os.read(fd, 200)
        except OSError as failure: say(name, errno.errorcode[failure.errno]); continue
        say(f"unmasked {name}", f"{len(got)} bytes" if got else "ENOENT")
    for name in ("sysrq-trigger", "sys/kernel/core_pattern", "irq/default_smp_affinity", "mtrr"):
        def touch_at():
            os.close(os.open(name, os.O_WRONLY, dir_fd=copy))
        say(f"writable {name}", attempt(touch_at))
"""},
]
