"""What the kernel counts: one sandbox takes all it can, another one must still get its share."""

ROOT, USER = ["root"], ["user"]
BOTH = ["user", "root"]
OF_EVERY_ID = """
def every_id(take, ids):
    # The counters are by user: root inside has many users.
    count = 0
    for uid in range(2000, 2000 + ids):
        if os.getuid() == 0: os.seteuid(uid)
        try:
            while take(): count += 1
        finally:
            if os.getuid() == 0: os.seteuid(0)
        if os.getuid() != 0: break
    return count
"""



def neighbours(world):
    """The table of neighbours has one size for the whole machine: 40 entries must not be made: only root of the host sees its count."""
    lines = world.run("""
made = subprocess.run("ip link add a0 type veth peer name a1 && ip link set a0 up && ip link set a1 up", shell=True, capture_output=True)
add = lambda n: subprocess.run(["ip", "neigh", "add", f"10.9.9.{n + 1}", "dev", "a0", "lladdr", "02:00:00:00:00:01", "nud", "stale"], capture_output=True)
print(made.stderr.decode().strip())
print(sum(add(n).returncode == 0 for n in range(40)))
""")
    return [f"made {lines}: {'apart' if lines[-1:] == ['0'] else 'counted for all'}"]


CASES = [
    {"name": "inotify instances", "needs": "counters", "as_users": BOTH, "expect": "taken", "then_expect": "ok", "script": OF_EVERY_ID + """
import resource
children = []
for worker in range(5):
    ready, done = os.pipe()
    pid = os.fork()
    if pid == 0:
        def take():
            return number("inotify_init1", 0) >= 0
        n = 0
        for uid in range(2000 + worker * 400, 2400 + worker * 400):
            if os.getuid() == 0: os.seteuid(uid)
            while take(): n += 1
            if os.getuid() == 0: os.seteuid(0)
            else: break
        os.write(done, str(n).encode()); time.sleep(12); os._exit(0)
    children.append(int(os.read(ready, 20)))
say(f"{sum(children)} instances", "taken")
hold(8)
""", "then": """
say("inotify_init", "ok" if number("inotify_init1", 0) >= 0 else errno.errorcode[ctypes.get_errno()])
"""},
    {"name": "inotify watches", "needs": "counters", "as_users": BOTH, "expect": "taken", "then_expect": "ok", "script": OF_EVERY_ID + """
os.makedirs("/tmp/w", exist_ok=True); os.chmod("/tmp/w", 0o777)
for n in range(1000): open(f"/tmp/w/{n}", "w").close()
total = 0
for uid in range(2000, 2300):
    if os.getuid() == 0: os.seteuid(uid)
    for _ in range(4):
        fd = number("inotify_init1", 0)
        if fd < 0: break
        for n in range(1000):
            if LIBC.inotify_add_watch(fd, f"/tmp/w/{n}".encode(), 2) < 0: break
            total += 1
    if os.getuid() == 0: os.seteuid(0)
    if total >= 260000: break
say(f"{total} watches", "taken")
hold(8)
""", "then": """
fd = number("inotify_init1", 0)
say("inotify_add_watch", "ok" if LIBC.inotify_add_watch(fd, b"/tmp", 2) >= 0 else errno.errorcode[ctypes.get_errno()])
"""},
    {"name": "fanotify groups", "as_users": BOTH, "expect": "taken", "then_expect": "ok|EPERM|ENOSYS", "script": OF_EVERY_ID + """
say(f"{every_id(lambda: number('fanotify_init', 0x200, 0) >= 0, 10)} groups", "taken")
hold(8)
""", "then": """
say("fanotify_init", call("fanotify_init", 0x200, 0))
"""},
    {"name": "pending signals", "as_users": BOTH, "expect": "taken", "then_expect": "ok", "script": OF_EVERY_ID + """
signal.pthread_sigmask(signal.SIG_BLOCK, [40])
count = 0
while LIBC.sigqueue(os.getpid(), 40, ctypes.c_void_p(0)) == 0 and count < 200000: count += 1
say(f"{count} signals", "taken")
hold(8)
""", "then": """
signal.pthread_sigmask(signal.SIG_BLOCK, [40])
say("sigqueue", "ok" if LIBC.sigqueue(os.getpid(), 40, ctypes.c_void_p(0)) == 0 else errno.errorcode[ctypes.get_errno()])
"""},
    {"name": "message queues", "needs": "counters", "as_users": BOTH, "expect": "taken", "then_expect": "ok|ENOSYS", "script": OF_EVERY_ID + """
RT = LIBC
number_of = [0]
def take():
    number_of[0] += 1
    return RT.mq_open(f"/q{number_of[0]}".encode(), os.O_CREAT | os.O_RDWR, 0o666, struct.pack("qqqq32x", 0, 10, 1024, 0)) >= 0
say(f"{every_id(take, 60)} queues", "taken")
hold(8)
""", "then": """
got = LIBC.mq_open(b"/mine", os.O_CREAT | os.O_RDWR, 0o666, struct.pack("qqqq32x", 0, 10, 1024, 0))
say("mq_open", "ok" if got >= 0 else errno.errorcode[ctypes.get_errno()])
"""},
    {"name": "locked memory", "as_users": BOTH, "expect": "taken", "then_expect": "ok", "script": """
count = 0
for n in range(64):
    shm = LIBC.shmget(0, 1 << 20, 0o1600)
    if shm < 0 or LIBC.shmctl(shm, 11, None) < 0: break
    count += 1
say(f"{count} MiB", "taken")
hold(8)
""", "then": """
shm = LIBC.shmget(0, 4096, 0o1600)
say("SHM_LOCK", "ok" if LIBC.shmctl(shm, 11, None) == 0 else errno.errorcode[ctypes.get_errno()])
"""},
    {"name": "asynchronous input and output", "as_users": BOTH, "expect": "taken", "then_expect": "ok|ENOSYS|EPERM", "script": """
total = 0
for size in (8000, 1000, 100, 10, 1):
    while True:
        context = ctypes.c_ulong(0)
        if call("io_setup", size, ctypes.byref(context)) != "ok": break
        total += size
say(f"{total} events", "taken")
hold(8)
""", "then": """
context = ctypes.c_ulong(0)
say("io_setup", call("io_setup", 1, ctypes.byref(context)))
"""},
    {"name": "pseudo terminals", "as_users": BOTH, "expect": "taken", "then_expect": "ok", "script": """
kept = []
while attempt(lambda: kept.append(os.open("/dev/ptmx", os.O_RDWR))) == "ok" and len(kept) < 5000: pass
say(f"{len(kept)} terminals", "taken")
hold(8)
""", "then": """
say("ptmx", attempt(touch, "/dev/ptmx", os.O_RDWR))
"""},
    {"name": "processes: a fork bomb", "needs": "pids", "as_users": BOTH, "expect": "taken|EAGAIN", "then_expect": "ok", "script": """
end = time.monotonic() + 12  # it ends by itself
if os.fork() == 0:
    for fd in (0, 1, 2): os.dup2(os.open("/dev/null", os.O_RDWR), fd)
    time.sleep(2)
    while time.monotonic() < end:
        try: os.fork()
        except OSError: time.sleep(0.05)
    os._exit(0)
say("a bomb", "taken")
hold(8)
""", "then": """
time.sleep(2)
start = time.monotonic()
threads = [threading.Thread(target=time.sleep, args=(0.1,)) for _ in range(50)]
for t in threads: t.start()
for t in threads: t.join()
say("threads", attempt(lambda: subprocess.run(["true"], check=True)))
say("in time", "ok" if time.monotonic() - start < 60 else f"{time.monotonic() - start:.1f} s")
"""},
    {"name": "memory", "needs": "memory", "as_users": BOTH, "expect": "killed by SIGKILL|bounded", "then_expect": "ok", "script": """
def eat():
    kept = []
    for n in range(400):
        kept.append(bytearray(os.urandom(1 << 20)) * 16)
    say("6.4 GB", "all given")
ended = child(eat)
say("eating", "bounded" if ended == "ok" else ended)
hold(3)
""", "then": """
say("memory", attempt(lambda: bytearray(100 << 20)))
"""},
    {"name": "memory by shared files", "needs": "memory", "as_users": BOTH, "expect": "ENOSPC|killed by SIGKILL|ENOMEM|stopped|CommandExitException", "then_expect": "ok", "script": """
def eat(path):
    with open(path, "wb", buffering=0) as file:
        for n in range(3000): file.write(bytes(1 << 20))
for path in ("/dev/shm/eat", "/tmp/memfd"):
    if path == "/tmp/memfd": path = f"/proc/self/fd/{os.memfd_create('x')}"
    def one():
        outcome = attempt(eat, path)
        say(path, "3 GB given" if outcome == "ok" else outcome)
    ended = child(one)
    if ended != "ok": say(path, ended)
""", "then": """
say("memory", attempt(lambda: bytearray(100 << 20)))
"""},
    {"name": "memory by socket buffers", "needs": "memory", "as_users": BOTH, "expect": "bounded", "then_expect": "ok", "script": """
# Unread data of loopback connections: at most 1.2 GB are tried.
pairs, total = [], 0
server = socket.create_server(("127.0.0.1", 0), backlog=1000)
try:
    while total < 1200 << 20 and len(pairs) < 3000:
        a = socket.create_connection(server.getsockname()); b, _ = server.accept()
        a.setblocking(False); a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 << 20)
        pairs.append((a, b))
        got = 0
        try:
            while True: got += a.send(bytes(1 << 20))
        except OSError: pass
        total += got
        if got < 1 << 14: break
except OSError as failure: print(failure, file=sys.stderr)
limit = 0
limit = int(open("/proc/meminfo").read().split()[1]) >> 10
used = [line for line in open("/proc/net/sockstat") if line.startswith("TCP")][0].split()[-1]
say(f"{total >> 20} MiB in {len(pairs)} connections, {int(used) * 4 >> 10} MiB of the kernel", "bounded" if total <= 600 << 20 else "beyond the memory limit")
hold(5)
""", "then": """
server = socket.create_server(("127.0.0.1", 0))
a = socket.create_connection(server.getsockname()); b, _ = server.accept()
a.sendall(bytes(1 << 16))
say("a connection", "ok" if len(b.recv(1 << 16)) else "broken")
"""},
    {"name": "disk", "needs": "disk", "as_users": BOTH, "expect": "ENOSPC|EFBIG|EPERM", "then_expect": "ok", "script": """
fd = os.open("/home/user/big", os.O_CREAT | os.O_WRONLY)
for n in range(20):
    outcome = attempt(os.posix_fallocate, fd, n << 30, 1 << 30)
    if outcome != "ok": break
say("20 GiB", outcome)
hold(3)
""", "then": """
open("/tmp/x", "wb").write(bytes(1 << 20))
say("write", "ok")
"""},
    {"name": "inodes", "needs": "disk", "as_users": ["root"], "expect": "limited|ENOSPC", "then_expect": "ok", "script": """
for path in ("/", "/home/user"):
    say(f"{path}: {os.statvfs(path).f_files}", "limited" if 0 < os.statvfs(path).f_files < 5_000_000 else "unlimited")
hold(1)
""", "then": """
say("a file", attempt(lambda: open("/tmp/y", "w").close()))
"""},
    {"name": "descriptors", "as_users": BOTH, "expect": "taken", "then_expect": "ok", "script": """
def many():
    kept = []
    while attempt(lambda: kept.append(os.open("/dev/null", os.O_RDONLY))) == "ok" and len(kept) < 200000: pass
    time.sleep(12)
for _ in range(20):
    if os.fork() == 0:
        many(); os._exit(0)
time.sleep(3)
say("20 processes", "taken")
hold(5)
""", "then": """
kept = [os.open("/dev/null", os.O_RDONLY) for _ in range(900)]
say("900 files", "ok")
"""},
    {"name": "pipes", "needs": "counters", "as_users": BOTH, "expect": "taken", "then_expect": "ok", "script": """
import fcntl
kept = []
def take():
    r, w = os.pipe(); kept.append((r, w))
    try: fcntl.fcntl(w, 1031, 1 << 20)
    except OSError: pass
    os.set_blocking(w, False)
    try:
        while True: os.write(w, bytes(1 << 16))
    except BlockingIOError: pass
while len(kept) < 400 and attempt(take) == "ok": pass
say(f"{len(kept)} pipes", "taken")
hold(5)
""", "then": """
import fcntl
r, w = os.pipe()
say("a wide pipe", attempt(fcntl.fcntl, w, 1031, 1 << 18))
"""},
    {"name": "locks and semaphores", "as_users": BOTH, "expect": "taken", "then_expect": "ok", "script": """
import fcntl
file = open("/tmp/locked", "wb")
count = 0
while count < 5000:
    try: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, count * 2)
    except OSError: break
    count += 1
sets = 0
while LIBC.semget(0, 100, 0o1600) >= 0 and sets < 40000: sets += 1
queues = 0
while LIBC.msgget(0, 0o1600) >= 0 and queues < 40000: queues += 1
say(f"{count} locks, {sets} sets, {queues} queues", "taken")
hold(5)
""", "then": """
import fcntl
fcntl.lockf(open("/tmp/mine", "wb"), fcntl.LOCK_EX)
say("semget", "ok" if LIBC.semget(0, 1, 0o1600) >= 0 else errno.errorcode[ctypes.get_errno()])
say("msgget", "ok" if LIBC.msgget(0, 0o1600) >= 0 else errno.errorcode[ctypes.get_errno()])
"""},
    {"name": "processor", "needs": "cpu", "as_users": BOTH, "expect": "taken", "then_expect": "ok", "script": """
for _ in range(64):
    if os.fork() == 0:
        end = time.monotonic() + 6
        while time.monotonic() < end: pass
        os._exit(0)
say("64 spinning", "taken")
hold(5)
""", "then": """
start = time.monotonic()
for _ in range(20): subprocess.run(["true"])
say("20 processes", "ok" if time.monotonic() - start < 60 else f"{time.monotonic() - start:.1f} s")
"""},
    {"name": "neighbours of interfaces", "as_users": ["root"], "do": neighbours, "expect": "apart"},
    {"name": "timers", "as_users": BOTH, "expect": "taken", "then_expect": "ok", "script": """
count = 0
timer = ctypes.c_void_p()
while LIBC.timer_create(1, None, ctypes.byref(timer)) == 0 and count < 200000: count += 1
say(f"{count} timers", "taken")
hold(6)
""", "then": """
timer = ctypes.c_void_p()
say("timer_create", "ok" if LIBC.timer_create(1, None, ctypes.byref(timer)) == 0 else errno.errorcode[ctypes.get_errno()])
"""},
]
