"""A large upload, and a kill while a command runs.

Usage: upload.py MIB     uploads a file of MIB MiB, prints {"sum", "took", "there"} of it: SHA-256 here, seconds, SHA-256 there;
                         then kills the sandbox under a running command, and prints {"ended", "after"}: how the wait for
                         it ended, and after how many seconds
"""

import hashlib
import json
import os
import sys
import tempfile
import threading
import time

from e2b import Sandbox


def upload(box: Sandbox, size: int) -> None:
    block = os.urandom(1 << 20)
    digest = hashlib.sha256()
    with tempfile.TemporaryFile() as file:
        for number in range(size):
            part = number.to_bytes(8, "big") + block[8:]
            digest.update(part)
            file.write(part)
        file.seek(0)
        began = time.monotonic()
        box.files.write("/home/user/large", file, request_timeout=500)
        took = time.monotonic() - began
    there = box.commands.run("sha256sum /home/user/large", timeout=300, request_timeout=300).stdout.split()[0]
    print(json.dumps({"sum": digest.hexdigest(), "took": took, "there": there}))


def kill(box: Sandbox) -> None:
    command = box.commands.run("echo runs; sleep 600", background=True, timeout=0)
    killed: list[float] = []

    def end() -> None:
        killed.append(time.monotonic())
        assert Sandbox.kill(box.sandbox_id) is True

    seen = threading.Event()
    ender = threading.Thread(target=lambda: (seen.wait(), end()))
    ender.start()
    try:
        command.wait(on_stdout=lambda _: seen.set())
        ended = "ended in good order"
    except Exception as fault:
        ended = type(fault).__name__
    after = time.monotonic() - killed[0]
    ender.join()
    assert box.is_running() is False
    print(json.dumps({"ended": ended, "after": after}))


box = Sandbox.create(timeout=900)
upload(box, int(sys.argv[1]))
kill(box)
