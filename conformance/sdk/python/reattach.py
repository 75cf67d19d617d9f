"""A program that comes back to its command after the server was restarted.

Usage: reattach.py start             prints {"sandbox": ID, "pid": PID} of a command that waits for a file
       reattach.py finish ID PID     lets the command go on, prints how it ended, kills the sandbox
"""

import json
import sys

from e2b import CommandExitException, Sandbox


def start() -> None:
    box = Sandbox.create(timeout=300)
    command = box.commands.run("while [ ! -e /tmp/go ]; do sleep 0.05; done; echo went on; exit 42", background=True, timeout=0)
    print(json.dumps({"sandbox": box.sandbox_id, "pid": command.pid}))


def finish(sandbox: str, pid: int) -> None:
    box = Sandbox.connect(sandbox)
    command = box.commands.connect(pid)
    box.files.write("/tmp/go", "")
    try:
        command.wait()
        print("exit 0")
    except CommandExitException as end:
        print(f"exit {end.exit_code}, said {end.stdout.strip()!r}")
    assert box.kill()


if sys.argv[1] == "start":
    start()
else:
    finish(sys.argv[2], int(sys.argv[3]))
