"""The areas of the Python client that every version is asked for. A version that lacks one says absent: what a
version offers is found by looking at what its module exports, never by its number."""

import asyncio
import datetime
import inspect
import os
import re

import e2b
from e2b import Sandbox
from support import Absent, create, eventually, failure, fetch, form, listed, same

TEXT = "grüße, 世界\n"
NO_SUCH = "i00000000000000000000"


def area_create(box, marker):
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)?", box.sandbox_id)
    assert box.commands.run('echo "$MARKER"; whoami; pwd').stdout == f"{marker}\nuser\n/home/user\n"
    assert "no-such-template" in str(failure(create, Sandbox, template="no-such-template"))


def area_secure(box, marker):
    other = create(Sandbox, secure=True, timeout=60)
    try:
        assert other.commands.run("echo secure").stdout == "secure\n"
        other.files.write("secret.txt", TEXT)
        assert other.files.read("secret.txt") == TEXT
        status, _ = fetch(f"https://{other.get_host(49983)}/files?path=secret.txt&username=user")
        assert status == 401, "without the token nobody reads"
    finally:
        other.kill()


def area_connect(box, marker):
    box.files.write("before.txt", TEXT)
    again = Sandbox.connect(box.sandbox_id)
    assert again.sandbox_id == box.sandbox_id
    assert again.files.read("before.txt") == TEXT
    assert again.is_running()


def area_list(box, marker):
    mine = listed(e2b, {"marker": marker})
    assert len(mine) == 1 and same(mine[0].sandbox_id, box.sandbox_id)
    assert mine[0].metadata["a b"] == "c&d=é"
    assert listed(e2b, {"marker": "nobody"}) == []


def area_info(box, marker):
    info = box.get_info()
    assert same(info.sandbox_id, box.sandbox_id)
    assert info.metadata["marker"] == marker
    assert info.end_at > info.started_at


def area_commands(box, marker):
    lines = []
    result = box.commands.run("echo out; echo err >&2", on_stdout=lines.append)
    assert (lines, result.stdout, result.stderr, result.exit_code) == (["out\n"], "out\n", "err\n", 0)
    failed = failure(box.commands.run, "echo no >&2; exit 3")
    assert isinstance(failed, e2b.CommandExitException)
    assert (failed.exit_code, failed.stderr) == (3, "no\n")
    assert len(box.commands.run("seq 1 200000", timeout=30).stdout) == 1288895
    run = box.commands.run("whoami; pwd; echo $A", user="root", cwd="/tmp", envs={"A": "b"})
    assert run.stdout == "root\n/tmp\nb\n"


def area_background(box, marker):
    # Versions that can keep stdin closed keep it closed unless they are asked.
    stdin = {"stdin": True} if "stdin" in inspect.signature(type(box.commands)._start).parameters else {}
    sleeper = box.commands.run('read line; echo "got $line"; sleep 60', background=True, **stdin)
    assert any(process.pid == sleeper.pid for process in box.commands.list())
    box.commands.send_stdin(sleeper.pid, "hello\n")
    assert next(iter(sleeper))[0] == "got hello\n"
    attached = box.commands.connect(sleeper.pid)
    sleeper.disconnect()
    assert box.commands.kill(sleeper.pid) is True
    assert failure(attached.wait).exit_code != 0
    assert box.commands.kill(sleeper.pid) is False


def area_files(box, marker):
    content = os.urandom(3_000_000)
    box.files.write("d/bytes", content)
    assert bytes(box.files.read("d/bytes", format="bytes")) == content
    assert b"".join(box.files.read("d/bytes", format="stream")) == content
    box.files.write("d/ü.txt", TEXT)
    assert sorted(entry.name for entry in box.files.list("d")) == ["bytes", "ü.txt"]
    assert box.files.make_dir("d/e") is True
    assert box.files.make_dir("d/e") is False
    box.files.rename("d/ü.txt", "d/e/new.txt")
    assert not box.files.exists("d/ü.txt")
    assert box.files.read("d/e/new.txt") == TEXT
    box.files.remove("d")
    assert not box.files.exists("d")
    assert isinstance(failure(box.files.read, "d/bytes"), e2b.NotFoundException)


def area_many_files(box, marker):
    files = [{"path": f"many/{n}.txt", "data": f"{n}{TEXT}"} for n in range(3)]
    getattr(box.files, "write_files", box.files.write)(files)
    for file in files:
        assert box.files.read(file["path"]) == file["data"]


def area_file_info(box, marker):
    if not hasattr(box.files, "get_info"):
        raise Absent
    box.files.write("info.txt", TEXT)
    info = box.files.get_info("info.txt")
    assert (info.path, info.size, info.owner) == ("/home/user/info.txt", len(TEXT.encode()), "user")


def area_watch(box, marker):
    box.files.make_dir("watched")
    handle = box.files.watch_dir("watched")
    box.files.write("watched/new.txt", TEXT)
    seen = []

    def created():
        seen.extend(handle.get_new_events())
        return any(event.type.value == "create" and event.name == "new.txt" for event in seen)

    eventually(created)
    handle.stop()


def area_recursive_watch(box, marker):
    if "recursive" not in inspect.signature(box.files.watch_dir).parameters:
        raise Absent
    box.files.make_dir("deep/er")
    handle = box.files.watch_dir("deep", recursive=True)
    box.files.write("deep/er/new.txt", TEXT)
    seen = []

    def created():
        seen.extend(handle.get_new_events())
        return any(event.type.value == "create" and event.name == "er/new.txt" for event in seen)

    eventually(created)
    handle.stop()


def area_pty(box, marker):
    from e2b.sandbox.commands.command_handle import PtySize

    terminal = box.pty.create(PtySize(rows=25, cols=81))
    screen = bytearray()

    def wait_for(text):
        for _, _, data in terminal:
            screen.extend(data or b"")
            if text in screen:
                return
        raise AssertionError(f"the terminal ended without {text!r}: {bytes(screen)!r}")

    box.pty.send_stdin(terminal.pid, b"stty size\n")
    wait_for(b"25 81")
    box.pty.resize(terminal.pid, PtySize(rows=30, cols=100))
    box.pty.send_stdin(terminal.pid, b"stty size\n")
    wait_for(b"30 100")
    box.pty.send_stdin(terminal.pid, b"exit 7\n")
    assert failure(terminal.wait).exit_code == 7


def area_ports(box, marker):
    box.files.write("site/index.html", TEXT)
    box.commands.run("python3 -m http.server 8000 --bind 127.0.0.1 --directory site", background=True)
    url = f"https://{box.get_host(8000)}/"
    answer = eventually(lambda: (got := fetch(url))[0] == 200 and got)
    assert answer[1].decode() == TEXT
    assert fetch(f"https://{box.get_host(8001)}/")[0] == 502, "nobody listens there"


def area_signed_urls(box, marker):
    other = create(Sandbox, secure=True, timeout=60)
    # Versions before signing was the default want to be asked for it.
    asked = {"use_signature": True} if "use_signature" in inspect.signature(other.download_url).parameters else {}
    try:
        body, content_type = form("up.txt", TEXT.encode())
        status, text = fetch(other.upload_url("up.txt", **asked), body, content_type)
        assert status == 200, text
        assert fetch(other.download_url("up.txt", **asked)) == (200, TEXT.encode())
        short = other.download_url("up.txt", use_signature_expiration=1, **asked)
        eventually(lambda: fetch(short)[0] == 401)
    finally:
        other.kill()


def area_metrics(box, marker):
    if not hasattr(box, "get_metrics"):
        raise Absent
    first = eventually(box.get_metrics)[0]
    assert first.cpu_count > 0 and first.mem_total > 0


def area_git(box, marker):
    if not hasattr(box, "git"):
        raise Absent
    box.git.init("repository")
    box.files.write("repository/a.txt", TEXT)
    box.git.configure_user("A", "a@example.com", path="repository")
    box.git.add("repository")
    box.git.commit("repository", "first")
    assert box.git.status("repository").is_clean


def area_timeout(box, marker):
    box.set_timeout(200)
    left = (box.get_info().end_at - datetime.datetime.now(datetime.timezone.utc)).total_seconds()
    assert 150 < left < 210, f"{left} s are left"
    short = create(Sandbox, timeout=60)
    short.set_timeout(1)
    eventually(lambda: not short.is_running())


def area_async(box, marker):
    async def program():
        make = e2b.AsyncSandbox.create
        one, two = await asyncio.gather(make(timeout=60), make(timeout=60))
        try:
            runs = await asyncio.gather(*(each.commands.run("echo $((6*7))") for each in (one, two)))
            assert [run.stdout for run in runs] == ["42\n", "42\n"]
            await one.files.write("a.txt", TEXT)
            assert await one.files.read("a.txt") == TEXT
            again = await e2b.AsyncSandbox.connect(two.sandbox_id)
            assert await again.is_running()
        finally:
            await asyncio.gather(one.kill(), two.kill())

    asyncio.run(program())


def area_errors(box, marker):
    assert isinstance(failure(box.files.read, "/none"), e2b.NotFoundException)
    # Whole seconds: the first versions send others in a form that the protocol does not have. When both ends
    # give up at the same moment some let their HTTP library's own exception through.
    slow = failure(box.commands.run, "sleep 30", timeout=1)
    assert isinstance(slow, e2b.TimeoutException) or "Timeout" in type(slow).__name__, f"it ended with {slow!r}"
    stranger = failure(Sandbox.connect, NO_SUCH)
    assert isinstance(stranger, e2b.NotFoundException) or re.search("not found|404", str(stranger)), f"it gave {stranger!r}"
    unknown = failure(create, Sandbox, api_key="e2b_" + "f" * 40)
    assert isinstance(unknown, (e2b.AuthenticationException, e2b.SandboxException)), f"a wrong key gave {unknown!r}"
    assert re.search("401|nauthorized|key", str(unknown)), f"a wrong key gave {unknown!r}"


def area_kill(box, marker):
    """The last one: it ends the sandbox that all areas share."""
    assert box.kill() in (True, None)  # the first versions return nothing
    assert Sandbox.kill(box.sandbox_id) is False
    assert box.is_running() is False
    after = failure(box.commands.run, "true")
    assert isinstance(after, e2b.SandboxException), f"it gave {after!r}"


AREAS = {
    name.removeprefix("area_").replace("_", " "): run
    for name, run in list(globals().items())
    if name.startswith("area_")
}
