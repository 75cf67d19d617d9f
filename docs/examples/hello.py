"""A program written for E2B: nothing in it knows of Isthmus."""

import os
import time
import urllib.error
import urllib.request

from e2b import PtySize, Sandbox

with Sandbox.create(timeout=120, metadata={"program": "hello.py"}) as sandbox:
    print("sandbox   ", sandbox.sandbox_id)

    result = sandbox.commands.run(
        "for i in 1 2 3; do echo line $i; done; uname -s",
        on_stdout=lambda text: print("streamed  ", text.strip().replace("\n", " | ")),
    )
    assert result.exit_code == 0

    watcher = sandbox.files.watch_dir("/home/user")
    sandbox.files.write("greeting.txt", "hello from Python")
    print("file      ", sandbox.files.read("greeting.txt"))
    print("watched   ", [f"{e.type.value} {e.name}" for e in watcher.get_new_events()])

    screen = []
    terminal = sandbox.pty.create(PtySize(rows=24, cols=80))
    sandbox.pty.send_stdin(terminal.pid, b"tput cols; exit\n")
    terminal.wait(on_pty=lambda data: screen.append(data))
    print("terminal  ", "80 columns" if b"80" in b"".join(screen) else screen)

    server = sandbox.commands.run("python3 -m http.server 8000", background=True)
    request = urllib.request.Request(
        os.environ["E2B_SANDBOX_URL"] + "/greeting.txt",
        headers={"E2b-Sandbox-Id": sandbox.sandbox_id, "E2b-Sandbox-Port": "8000"},
    )
    for attempt in range(50):
        try:
            print("port 8000 ", urllib.request.urlopen(request).read().decode())
            break
        except urllib.error.HTTPError as refused:
            assert refused.code == 502, refused
            time.sleep(0.1)
    server.kill()

print("killed    ", not sandbox.is_running())
