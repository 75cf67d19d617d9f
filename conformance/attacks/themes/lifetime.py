"""Living on: past a kill, past the deadline."""

import threading
import time

from e2b import Sandbox

BOTH = ["user", "root"]

STUBBORN = """
marker = HOST["marker"] + "-inside"
def stay():
    os.setsid()
    for fd in (0, 1, 2): os.dup2(os.open("/dev/null", os.O_RDWR), fd)
    for number in range(1, 65):
        try: signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError): pass
    os.execvp("bash", [marker, "-c", "trap '' TERM HUP INT; while :; do sleep 1000; done", marker])
for n in range(5):
    if os.fork() == 0:
        if os.fork() == 0: stay()
        os._exit(0)
pid = os.fork()
if pid == 0: stay()
time.sleep(0.3)
os.kill(pid, signal.SIGSTOP)
pid = os.fork()
if pid == 0:
    LIBC.ptrace(0, 0, 0, 0)
    stay()
"""
BOMB = """
if os.fork() == 0:
    os.setsid()
    for fd in (0, 1, 2): os.close(fd)
    end = time.monotonic() + 15  # it ends by itself, should the kill not
    while time.monotonic() < end:
        try: os.fork()
        except OSError: time.sleep(0.05)
    os._exit(0)
"""


def gone(world, box_id, seconds):
    """Waits until nothing of the sandbox is left on the host."""
    word = world.bait.marker + "-inside"
    end = time.monotonic() + seconds
    while time.monotonic() < end and world.processes(word):
        time.sleep(0.2)
    left = world.processes(word)
    listed = [box for box in Sandbox.list().next_items() if box.sandbox_id == box_id]
    return [f"processes left {left}: {'ended' if not left else 'alive'}", f"listed {len(listed)}: {'ended' if not listed else 'alive'}"]


def launch(world, script):
    """Starts the attack and does not wait for its end, which a sandbox full of processes may never tell."""
    from run import outfit
    command = outfit(world.box, world.bait, script)

    def start():
        try:
            world.box.commands.run(command, user=world.user, timeout=60)
        except Exception:
            pass  # it ends with its sandbox
    threading.Thread(target=start, daemon=True).start()
    time.sleep(3)


def killed(script):
    """Kills a sandbox that does not want to die."""
    def do(world):
        launch(world, script)
        # Looking at each of thousands of forking processes would outlast the bomb.
        seen = BOMB in script or bool(world.processes(world.bait.marker + "-inside"))
        start = time.monotonic()
        world.box.kill()
        took = time.monotonic() - start
        lines = gone(world, world.box.sandbox_id, 60)
        return [*lines, f"processes were seen before {seen}: {'ended' if seen else 'alive'}", f"after {took:.1f} s: {'ended' if took < 60 else 'late'}"]
    return do


def deadline(script):
    """Lets the time of a sandbox pass."""
    def do(world):
        launch(world, script)
        # Looking at each of thousands of forking processes would outlast the bomb.
        seen = BOMB in script or bool(world.processes(world.bait.marker + "-inside"))
        world.box.set_timeout(2)
        time.sleep(3)
        return [*gone(world, world.box.sandbox_id, 60), f"processes were seen before {seen}: {'ended' if seen else 'alive'}"]
    return do


CASES = [
    {"name": "past a kill", "as_users": BOTH, "do": killed(STUBBORN), "expect": "ended"},
    {"name": "past a kill, forking", "as_users": BOTH, "do": killed(STUBBORN + BOMB), "expect": "ended"},
    {"name": "past the deadline", "as_users": BOTH, "do": deadline(STUBBORN), "expect": "ended"},
    {"name": "past the deadline, forking", "as_users": BOTH, "do": deadline(STUBBORN + BOMB), "expect": "ended"},
]
