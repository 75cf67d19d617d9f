"""What the facade may be made to dial, and the sockets of the egress itself."""

import time

import httpx

BOTH = ["user", "root"]
UP = "up\n"
NAMED = "named\n"

FORBIDDEN = """
targets = [(a, HOST["port"]) for a in HOST["addresses"] if not a.startswith("fe80")]
targets += [(a, HOST["port"]) for a in ("127.0.0.1", "127.1.2.3", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "2002:7f00:1::1", "10.0.2.100", "10.0.2.3", "10.0.2.2", "fd69:7374::64")]
for a in HOST["addresses"]:
    if ":" not in a: targets += [("::ffff:" + a, HOST["port"]), ("64:ff9b::" + a, HOST["port"]), ("::" + a, HOST["port"])]
    if a.startswith("fe80"): targets.append((a + "%lo", HOST["port"]))
targets += [(a, 80) for a in ("169.254.169.254", "169.254.170.2", "169.254.1.1", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fe80::1%lo", "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "2001:0:a9fe:a9fe::1", "10.0.0.1", "10.255.255.53", "172.16.0.1", "172.31.255.254", "192.168.0.1", "192.168.1.1", "100.64.0.1", "198.18.0.1", "240.0.0.1", "255.255.255.255", "224.0.0.1", "0.1.2.3", "192.0.0.1", "192.88.99.1", "fc00::1", "fec0::1", "ff02::1")]
results = {}
def one(target): results[target] = reach(*target, wait=4)
threads = [threading.Thread(target=one, args=(t,)) for t in targets]
for t in threads: t.start()
for t in threads: t.join()
for target in targets: say(f"{target[0]} {target[1]}", results.get(target, "refused"))
"""

RULES = """
# Empties the whole packet filter of this network namespace by a hand-made netlink batch.
def attribute(kind, body): return struct.pack("HH", 4 + len(body), kind) + body + bytes(-len(body) % 4)
def message(kind, flags, body, sequence): return struct.pack("IHHII", 16 + len(body), kind, flags, sequence, 0) + body
def batch(*messages):
    family = struct.pack("BBH", 0, 0, socket.htons(10))
    parts = [message(16, 1, family, 1)] + [message(kind, flags, body, n + 2) for n, (kind, flags, body) in enumerate(messages)] + [message(17, 1, family, 99)]
    with socket.socket(16, 3, 12) as netlink:
        netlink.bind((0, 0)); netlink.settimeout(2)
        netlink.send(b"".join(parts))
        answer = netlink.recv(65536)
    return struct.unpack("i", answer[16:20])[0]
try: outcome = batch(((10 << 8) | 2, 5, struct.pack("BBH", 0, 0, 0)))
except OSError as failure: outcome = failure.errno
if outcome: say("flush of the rules", errno.errorcode.get(abs(outcome), outcome))
subprocess.run("ip route flush table all; ip rule flush; ip addr add 169.254.169.254/32 dev lo; ip route add local default dev lo", shell=True, capture_output=True)
"""

UDP = """
def udp(address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.settimeout(1)
        try:
            if address.endswith(".255"): s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            s.sendto(b"x", (address, port)); got = s.recv(100)
        except OSError: return "refused"
        return "open" if HOST["marker"].encode() in got else "answered"
targets = list(HOST["addresses"]) + ["127.0.0.1", "0.0.0.0", "255.255.255.255", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "10.0.2.100", "10.0.2.2"] + ["::ffff:" + a for a in HOST["addresses"] if ":" not in a]
for a in targets:
    if not a.startswith("fe80"): say(f"udp {a}", udp(a, HOST["port"]))
for a in ("127.0.0.1", "10.0.2.100", "10.0.2.3", "::1", "fd69:7374::64"): say(f"udp direct {a}", udp(a, 15001))
"""


def named(create):
    """A program of a tenant that asks the facade to permit what is never permitted."""
    def do(world):
        from e2b import Sandbox
        hosts = [a for a in __import__("json").loads(world.bait.description())["addresses"] if ":" not in a]
        lines = []
        for allowed in (["127.0.0.1/32", *[a + "/32" for a in hosts]], hosts, ["169.254.169.254", *hosts], ["0.0.0.0/0"], ["localhost", "*"], ["127.0.0.1.nip.io", "localtest.me"]):
            try:
                box = Sandbox.create(timeout=60, network={"allow_out": allowed, **create})
            except Exception as failure:
                lines.append(f"{allowed}: refused")
                continue
            with box:
                for address in (*hosts, "169.254.169.254", "10.0.0.1"):
                    port = 80 if address.startswith(("169.254", "10.")) else world.bait.port
                    got = box.commands.run(f"timeout 4 bash -c 'exec 3<>/dev/tcp/{address}/{port} && timeout 2 head -c 20 <&3; echo $?' 2>&1 | tail -n 1; true", timeout=20).stdout.strip()
                    lines.append(f"{allowed} {address}: {'refused' if world.bait.marker not in got and got != '124' else got}")
        return lines
    return do


def hairpin(world):
    """Asks the facade's gateway for the ports of the egress itself."""
    import os
    lines = []
    for port in (15001, 53, 49983):
        try:
            answer = httpx.get(os.environ["E2B_SANDBOX_URL"] + "/", headers={"Host": f"{port}-{world.box.sandbox_id}.localhost"}, timeout=8)
            lines.append(f"{port}: {answer.status_code}")
        except httpx.HTTPError as failure:
            lines.append(f"{port}: {type(failure).__name__}")
    lines.append(f"the facade: {'alive' if world.other.commands.run('echo up').stdout == UP else 'dead'}")
    return lines


def descriptors(script, share):
    """Holds as many flows as it can; the facade must keep descriptors for the others."""
    def do(world):
        import threading
        before = world.descriptors()
        done = threading.Event()
        lines: list[str] = []

        def attack():
            lines.extend(world.run(script))
            done.set()
        threading.Thread(target=attack, daemon=True).start()
        peak, other, slow = 0, "", 0.0
        while not done.wait(0.5):
            peak = max(peak, world.descriptors())
            start = time.monotonic()
            try:
                other = world.other.commands.run("echo up", timeout=60).stdout
            except Exception as failure:
                other = type(failure).__name__
            slow = max(slow, time.monotonic() - start)
        egress = world.other.commands.run("getent hosts example.com >/dev/null && echo named", timeout=60).stdout
        limit = int(next(l for l in open(f"/proc/{__import__('os').environ['ATTACKS_SERVER_PID']}/limits") if l.startswith("Max open files")).split()[3])
        return [f"attack said {lines[-1:]}, descriptors {before} -> {peak} of {limit}: {'bounded' if peak - before < limit * share else 'exhausted'}",
                f"other sandbox said {other!r} after at most {slow:.1f} s: {'bounded' if other == UP and slow < 60 else 'hurt'}",
                f"names in the other sandbox {egress!r}: {'bounded' if egress == NAMED else 'hurt'}"]
    return do


def together(world):
    """Four sandboxes hold what each may hold; a fifth one must still be made, and run, and find names."""
    import os
    import threading

    from e2b import Sandbox

    def one(box):
        from run import outfit
        try:
            box.commands.run(outfit(box, world.bait, TOGETHER), timeout=40)
        except Exception:
            pass
    boxes = [Sandbox.create(timeout=60) for _ in range(4)]
    threads = [threading.Thread(target=one, args=(box,), daemon=True) for box in boxes]
    for thread in threads:
        thread.start()
    peak, wrong, made = 0, [], 0
    limit = int(next(l for l in open(f"/proc/{os.environ['ATTACKS_SERVER_PID']}/limits") if l.startswith("Max open files")).split()[3])
    end = time.monotonic() + 12
    while time.monotonic() < end:
        peak = max(peak, world.descriptors())
        try:
            if world.other.commands.run("getent hosts example.com >/dev/null && timeout 5 bash -c 'exec 3<>/dev/tcp/example.com/443' && echo up", timeout=60).stdout != UP:
                wrong.append("no egress")
            with Sandbox.create(timeout=30) as fresh:
                made += fresh.commands.run("echo up", timeout=60).stdout == UP
        except Exception as failure:
            wrong.append(type(failure).__name__ + " " + str(failure)[:80])
    for box in boxes:
        box.kill()
    return [f"descriptors {peak} of {limit}, {made} made beside, faults {wrong[:3]}: {'bounded' if not wrong else 'hurt'}"]


MANY = """
kept, failed = [], 0
for n in range({count}):
    try:
        s = socket.socket({family}, {kind}); s.setblocking(False); s.{what}; kept.append(s)
    except BlockingIOError: kept.append(s)
    except OSError: failed += 1
    if n % 200 == 0: time.sleep(0.02)
time.sleep(6)
say("kept", str(len(kept)))
"""

TOGETHER = MANY.format(count=3000, family=2, kind=1, what='connect(("203.0.113.7", 81))').replace("time.sleep(6)", "") + MANY.format(count=6000, family=2, kind=2, what='sendto(b"x", ("203.0.113.7", 1000 + n))').replace("kept, failed = [], 0", "").replace("sleep(6)", "sleep(12)")

CASES = [
    {"name": "forbidden destinations", "as_users": BOTH, "script": FORBIDDEN, "expect": "refused"},
    {"name": "forbidden destinations after the rules are emptied", "as_users": ["root"], "script": RULES + FORBIDDEN, "expect": "refused|EPERM|EPROTONOSUPPORT"},
    {"name": "forbidden destinations by UDP", "as_users": BOTH, "script": UDP, "expect": "refused"},
    {"name": "the egress sockets called directly", "as_users": BOTH, "expect": "refused", "script": """
for a in ("127.0.0.1", "127.9.9.9", "10.0.2.100", "10.0.2.3", "0.0.0.0", "::1", "::ffff:127.0.0.1", "fd69:7374::64"):
    for port in (15001,): say(f"{a} {port}", reach(a, port))
"""},
    {"name": "a tenant that permits itself the host", "as_users": ["user"], "do": named({}), "expect": "refused"},
    {"name": "a tenant that denies all but the host", "as_users": ["user"], "do": named({"deny_out": ["0.0.0.0/0"]}), "expect": "refused"},
    {"name": "names that point at the host", "as_users": BOTH, "expect": "refused|unresolved", "script": """
for name in ("localtest.me", "127.0.0.1.nip.io", "169.254.169.254.nip.io", "0.0.0.0.nip.io", *(a + ".nip.io" for a in HOST["addresses"] if ":" not in a), HOST["host_name"], "localhost", "metadata.google.internal", "host.docker.internal"):
    try: found = {item[4][0] for item in socket.getaddrinfo(name, HOST["port"], type=socket.SOCK_STREAM)}
    except OSError:
        say(name, "unresolved"); continue
    for a in found: say(f"{name} {a}", reach(a, 80 if a.startswith("169.") else HOST["port"]))
"""},
    {"name": "another sandbox by every address of a sandbox", "as_users": BOTH, "expect": "refused", "then_expect": "refused", "script": """
server = socket.create_server(("0.0.0.0", 7777)); threading.Thread(target=lambda: [server.accept()[0].sendall(HOST["marker"].encode()) for _ in range(99)], daemon=True).start()
udp = socket.socket(2, 2); udp.bind(("0.0.0.0", 7777))
abstract = socket.socket(1); abstract.bind("\\0attack"); abstract.listen()
LIBC.shmget(4242, 4096, 0o1666)
say("ready", "refused")
hold(15)
""", "then": """
for a in ("127.0.0.1", "10.0.2.100", "10.0.2.3", "10.0.2.101", "fd69:7374::64", "::1"): say(a, reach(a, 7777))
say("abstract", "refused" if attempt(socket.socket(1).connect, "\\0attack") != "ok" else "reached")
say("shm", "refused" if LIBC.shmget(4242, 4096, 0) < 0 else "reached")
"""},
    {"name": "no internet means none", "as_users": BOTH, "create": {"allow_internet_access": False}, "expect": "refused|unresolved", "script": """
for a, port in (("1.1.1.1", 443), ("8.8.8.8", 53), ("2606:4700:4700::1111", 443)): say(f"{a} {port}", reach(a, port))
try: socket.getaddrinfo("example.com", 443); say("name", "resolved")
except OSError: say("name", "unresolved")
def query(address):
    s = socket.socket(2, 2); s.settimeout(3)
    try: s.sendto(bytes.fromhex("123401000001000000000000076578616d706c6503636f6d0000010001"), (address, 53)); return "answered" if s.recv(512)[7] else "refused"
    except OSError: return "refused"
say("udp 8.8.8.8", query("8.8.8.8"))
say("udp 10.0.2.3", query("10.0.2.3"))
"""},
    {"name": "malformed names and packets", "as_users": ["user"], "expect": "alive", "script": """
import random
random.seed(7)
s = socket.socket(2, 2); s.settimeout(0.2)
for n in range(3000):
    body = bytes.fromhex("123401000001000000000000076578616d706c6503636f6d0000010001")
    body = bytearray(body + random.randbytes(random.randrange(200)) if n % 3 else random.randbytes(random.randrange(1, 600)))
    body[random.randrange(len(body))] = random.randrange(256)
    try: s.sendto(body, ("10.0.2.3", 53))
    except OSError: pass
for n in range(50):
    try:
        with socket.create_connection(("10.0.2.3", 53), 2) as c: c.sendall(struct.pack(">H", 65535) + random.randbytes(500))
    except OSError: pass
time.sleep(3)
try: socket.getaddrinfo("example.com", 443); say("resolver", "alive")
except OSError as failure: say("resolver", failure)
"""},
    {"name": "the gateway asked for the ports of the egress", "as_users": ["user"], "do": hairpin, "expect": "(4|5)[0-9][0-9]|alive|[A-Z][A-Za-z]+"},
    {"name": "12000 connections at once", "as_users": ["user"], "do": descriptors(MANY.format(count=12000, family=2, kind=1, what='connect(("203.0.113.7", 81))'), 0.25), "expect": "bounded"},
    {"name": "12000 UDP flows at once", "as_users": ["user"], "do": descriptors(MANY.format(count=12000, family=2, kind=2, what='sendto(b"x", ("203.0.113.7", 1000 + n))'), 0.25), "expect": "bounded"},
    {"name": "6000 connections to the resolver", "as_users": ["user"], "do": descriptors(MANY.format(count=6000, family=2, kind=1, what='connect(("10.0.2.3", 53))'), 0.25), "expect": "bounded"},
    {"name": "6000 connections to the egress itself", "as_users": ["user"], "do": descriptors(MANY.format(count=6000, family=2, kind=1, what='connect(("127.0.0.1", 15001))'), 0.25), "expect": "bounded"},
    {"name": "6000 names at once", "as_users": ["user"], "do": descriptors(MANY.format(count=6000, family=2, kind=2, what='sendto(bytes.fromhex("123401000001000000000000") + b"\\x08" + b"%08d" % n + bytes.fromhex("04746573740000010001"), ("10.0.2.3", 53))'), 0.25), "expect": "bounded"},
    {"name": "four sandboxes hold flows together", "as_users": ["user"], "do": together, "expect": "bounded"},
]
