"""The agent (envd): its inner port, its routes, its file calls, its memory."""

import threading
import time

import httpx

BOTH = ["user", "root"]
UP = "up\n"
SEEN = "absent|refused|own|empty|special"


def file_calls(world):
    """Asks the agent, which is privileged, for what only it could open."""
    bait, lines = world.bait, []
    control = first(world, "/etc/passwd")
    lines.append(f"an ordinary file: {control if control == 'own' else 'cannot be read, the case proves nothing'}")
    paths = [bait.file, f"/proc/1/root{bait.file}", f"/proc/self/root{bait.file}", f"/proc/self/cwd{bait.file}", f"/../../../../..{bait.file}",
             f"/home/user/../../../..{bait.file}", "/proc/1/environ", "/proc/self/environ", "/proc/self/maps", "/proc/thread-self/environ", "/proc/1/mem", "/proc/self/mem",
             "/proc/self/exe", "/proc/1/cmdline", "/proc/self/mountinfo", "/proc/self/auxv", "/dev/mem", "/dev/kmsg", "/dev/zero", "/proc/kcore", "/proc/self/pagemap"]
    paths += [f"/proc/self/fd/{n}" for n in range(32)] + [f"/proc/self/fd/{n}{bait.file}" for n in range(32)]
    paths += [f"/proc/self/fd/{n}/../../../../../../..{bait.file}" for n in range(16)]
    for path in paths:
        lines.append(f"read {path}: {first(world, path)}")
    return lines


def first(world, path):
    """What the first piece of a file betrays."""
    try:
        got = b""
        for chunk in world.box.files.read(path, format="stream", user=world.user, request_timeout=5):
            got += chunk
            if len(got) > 1 << 16:
                break
    except Exception as failure:
        return "absent" if "NotFound" in type(failure).__name__ else "refused"
    if world.bait.marker.encode() in got:
        return "the bait"
    secret = [word for word in (b"ISTHMUS", b"/data/", b"local/boxes", b"token") if word in got]
    if secret and path != "/proc/self/exe":
        return f"host words {secret}"
    return "own" if got else "empty"


def links(world):
    """Follows links and races them: what the agent opens for a path that changes."""
    world.run("""
os.makedirs("/tmp/l", exist_ok=True)
for name, target in (("root", "/proc/self/root"), ("pid1", "/proc/1/root"), ("cwd", "/proc/self/cwd"), ("fd", "/proc/self/fd"), ("environ", "/proc/self/environ"), ("bait", HOST["file"]), ("exe", "/proc/self/exe")):
    if not os.path.lexists("/tmp/l/" + name): os.symlink(target, "/tmp/l/" + name)
""")
    file, lines = world.bait.file, []
    for path in (f"/tmp/l/root{file}", f"/tmp/l/pid1{file}", f"/tmp/l/cwd/../../../..{file}", "/tmp/l/environ", "/tmp/l/bait", "/tmp/l/fd/3", "/tmp/l/fd/4"):
        lines.append(f"read {path}: {first(world, path)}")
    return lines


def writes(world):
    """Writes to what only the agent could write."""
    file, lines = world.bait.file, []
    for path in (file, f"/proc/1/root{file}", f"/proc/self/root{file}", "/proc/self/exe", "/proc/1/exe", "/proc/self/mem", "/proc/1/mem", "/proc/self/uid_map",
                 "/proc/self/oom_score_adj", "/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/self/timerslack_ns", "/proc/self/attr/current",
                 "/proc/self/coredump_filter", "/proc/self/clear_refs", "/proc/self/comm", *(f"/proc/self/fd/{n}" for n in range(3, 24))):
        try:
            world.box.files.write(path, "1", user=world.user, request_timeout=5)
        except Exception:
            lines.append(f"write {path}: refused")
            continue
        own = path.endswith(file)  # made inside its own tree, where nothing is at that path
        lines.append(f"write {path}: {'own' if own else 'written'}")
    lines.append(f"the agent: {'refused' if world.box.commands.run('echo up').stdout == UP else 'broken'}")
    return lines


def listing(world):
    """Lists folders of the agent's own process."""
    lines = []
    for path in ("/proc/self/fd", "/proc/1/fd", "/proc/self/task", "/proc/self/map_files", "/proc/self/ns", "/proc/1/root/tmp", "/proc/self/root/tmp", "/proc/self/cwd"):
        try:
            entries = world.box.files.list(path, user=world.user, request_timeout=10)
        except Exception:
            lines.append(f"list {path}: refused")
            continue
        words = " ".join(f"{entry.path} {entry.symlink_target}" for entry in entries)
        lines.append(f"list {path}: {'host words' if '/data/' in words or world.bait.marker in words or 'attacks-' in words else 'own'}")
    return lines


def fifos(world):
    """Reads and writes pipes without another end, and endless devices, many at once; the agent must go on."""
    world.run("""
for n in range(50):
    if not os.path.exists(f"/tmp/fifo{n}"): os.mkfifo(f"/tmp/fifo{n}", 0o666)
""")

    def use(n):
        try:
            world.box.files.read(f"/tmp/fifo{n}", request_timeout=3)
        except Exception:
            pass

    readers = [threading.Thread(target=use, args=(n,), daemon=True) for n in range(50)]
    for reader in readers:
        reader.start()
    time.sleep(1)
    start = time.monotonic()
    alive = world.box.commands.run("echo up", timeout=10).stdout == UP
    for reader in readers:
        reader.join(10)
    return [f"a command beside it: {'refused' if alive and time.monotonic() - start < 60 else 'stuck'}"]


def traffic_headers(world):
    """What a server inside is told by the facade: no secret of the facade or of the caller's account."""
    import os
    world.run("""
if os.fork() == 0:
    os.setsid()
    for fd in (0, 1, 2): os.close(fd)
    server = socket.create_server(("127.0.0.1", 8000))
    connection, _ = server.accept()
    got = connection.recv(65536)
    open("/tmp/headers", "wb").write(got)
    connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\nok")
    connection.close()
    os._exit(0)
time.sleep(0.3)
""")
    url = os.environ["E2B_SANDBOX_URL"]
    sent = {"Host": f"8000-{world.box.sandbox_id}.localhost", "X-API-Key": "k" * 8, "X-Access-Token": "seen-token", "e2b-traffic-access-token": "seen-traffic"}
    httpx.get(url + "/x", headers=sent, timeout=10)
    got = world.box.files.read("/tmp/headers").lower()
    import os as environment
    key = environment.environ["E2B_API_KEY"].lower()
    words = [word for word in ("isthmus", "agent", key, "authorization", "seen-traffic") if word in got.replace("user-agent", "")]
    return [f"headers: {'refused' if not words else 'they hold ' + str(words)}"]


def journal(world):
    """Makes the agent keep as much as it can: long outputs nobody reads, many processes that end, many watchers."""
    def big():
        try:
            world.box.commands.run("head -c 600000000 /dev/zero | tr '\\0' x", timeout=15, background=True)
        except Exception:
            pass
    before = world.memory()
    for _ in range(6):
        big()
    for n in range(150):
        world.box.commands.run("true", envs={"X": "y" * 20000}, background=True, timeout=30)
    time.sleep(3)
    grown = world.memory() - before
    rss = int(world.box.commands.run("grep VmRSS /proc/1/status | tr -dc 0-9").stdout) >> 10
    return [f"the server grew by {grown} MiB: {'refused' if grown < 200 else 'unbounded'}", f"the agent has {rss} MiB: {'refused' if rss < 200 else 'unbounded'}"]


def endless_answer(world):
    """A server inside that never ends its headers: the facade must not keep them."""
    import os
    world.run("""
if os.fork() == 0:
    os.setsid()
    for fd in (0, 1, 2): os.close(fd)
    server = socket.create_server(("127.0.0.1", 8001))
    def flood(connection):
        try:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\\r\\n")
            for n in range(3000): connection.sendall((f"X-{n}: " + "y" * 100000 + "\\r\\n").encode())
        except OSError: pass
    while True:
        threading.Thread(target=flood, args=(server.accept()[0],), daemon=True).start()
time.sleep(0.3)
""")
    before, peak, lines = world.memory(), 0, []

    def ask():
        try:
            httpx.get(os.environ["E2B_SANDBOX_URL"], headers={"Host": f"8001-{world.box.sandbox_id}.localhost"}, timeout=8)
        except Exception:
            pass
    asking = [threading.Thread(target=ask, daemon=True) for _ in range(4)]
    for one in asking:
        one.start()
    for _ in range(40):
        peak = max(peak, world.memory())
        time.sleep(0.1)
    for one in asking:
        one.join(10)
    lines.append(f"the server grew by {peak - before} MiB: {'refused' if peak - before < 150 else 'unbounded'}")
    return lines


def crippled(world):
    """Takes the agent's own limits away from inside; the facade must still end the sandbox, and serve others."""
    world.run("""
for resource, value in ((7, 0), (1, 0), (2, 0)):
    call("prlimit64", 1, resource, struct.pack("QQ", value, value), 0)
""")
    try:
        world.box.commands.run("echo up", timeout=5, request_timeout=10)
    except Exception:
        pass
    start = time.monotonic()
    other = world.other.commands.run("echo up", timeout=5).stdout
    killed = world.box.kill()
    return [f"other: {'refused' if other == UP else 'hurt'}", f"killed: {'refused' if killed and time.monotonic() - start < 60 else 'not'}"]


CASES = [
    {"name": "reads by the file calls", "as_users": BOTH, "do": file_calls, "expect": SEEN},
    {"name": "reads through links", "as_users": BOTH, "do": links, "expect": SEEN},
    {"name": "writes by the file calls", "as_users": BOTH, "do": writes, "expect": "refused|own"},
    {"name": "folders of the agent's process", "as_users": BOTH, "do": listing, "expect": "refused|own"},
    {"name": "pipes without another end", "as_users": ["user"], "do": fifos, "expect": "refused"},
    {"name": "the inner port without a token", "as_users": BOTH, "expect": "40[0-9]|refused|204 empty", "create": {"secure": True}, "script": """
import http.client
def ask(method, path, body="", headers={}):
    connection = http.client.HTTPConnection("127.0.0.1", 49983, timeout=5)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        got = answer.read(300)
    except Exception: return "refused"
    return f"{answer.status} {'empty' if not got else ''}".strip() if answer.status == 204 else str(answer.status) if answer.status >= 400 else f"{answer.status} {got[:60]!r}"
json_body = {"Content-Type": "application/json"}
for method, path, body in (("POST", "/init", '{"accessToken":"mine","envVars":{"A":"b"}}'), ("GET", "/envs", ""), ("GET", "/metrics", ""), ("GET", "/health", ""),
        ("GET", "/files?path=/etc/shadow&username=root", ""), ("POST", "/process.Process/List", "{}"), ("POST", "/filesystem.Filesystem/Stat", '{"path":"/"}'),
        ("POST", "/filesystem.Filesystem/ListDir", '{"path":"/root"}'), ("GET", "/isthmus", ""), ("GET", "/isthmus/journal", ""), ("POST", "/isthmus/deadline", "{}"), ("POST", "/isthmus/exit", "{}"),
        ("POST", "/isthmus/init", "{}"), ("GET", "/debug/pprof/heap", ""), ("GET", "/debug/vars", ""), ("GET", "/_isthmus/log", ""), ("CONNECT", "127.0.0.1:1", ""), ("POST", "/dial", "{}"), ("POST", "/freeze", "{}"), ("POST", "/snapshot", "{}")):
    for extra in ({}, {"X-Access-Token": "mine"}, {"X-Isthmus-Secret": "x", "X-Isthmus-Agent": "x", "Isthmus-Secret": "x", "Authorization": "Bearer x"}):
        say(f"{method} {path}", ask(method, path, body, json_body | extra))
"""},
    {"name": "secrets among the agent's strings", "as_users": BOTH, "expect": "none", "script": """
found = [name for name in os.environ if "ISTHMUS" in name or "TOKEN" in name or "SECRET" in name]
for at, _, files in os.walk("/run"):
    for file in files:
        try: text = read(os.path.join(at, file))
        except OSError: continue
        if b"token" in text.lower() or b"secret" in text.lower() or (HOST["data"] and HOST["data"].encode() in text): found.append(os.path.join(at, file))
if HOST["data"] and HOST["data"] in open("/proc/self/mountinfo").read(): found.append("mountinfo")
if HOST["data"] and HOST["data"].encode() in read("/proc/1/cmdline"): found.append("cmdline")
say("secrets", found or "none")
"""},
    {"name": "what the facade tells a server inside", "as_users": ["user"], "do": traffic_headers, "expect": "refused"},
    {"name": "fill the agent's and the facade's memory", "as_users": ["user"], "do": journal, "expect": "refused"},
    {"name": "an answer whose headers never end", "as_users": ["user"], "do": endless_answer, "expect": "refused"},
    {"name": "an agent without descriptors", "as_users": ["root"], "do": crippled, "expect": "refused"},
]
