"""Modal's own Python SDK, unmodified, against the simulator. It says how many checks held.

By default it is on the second version of sandboxes; MODAL_SANDBOX_V2=0 has it use the first.
"""

import os
import ssl
import sys
import urllib.request

import modal
from modal.exception import AlreadyExistsError, NotFoundError

checks = 0


def same(want, got):
    global checks
    assert want == got, f"want {want!r}, got {got!r}"
    checks += 1


def programs(box):
    p = box.exec("sh", "-c", "cat; echo $GREETING $MORE; echo bad >&2; exit 7", env={"MORE": "again"})
    p.stdin.write(b"input\n")
    p.stdin.write_eof()
    p.stdin.drain()
    same("input\nhello again\n", p.stdout.read())
    same("bad\n", p.stderr.read())
    same(7, p.wait())
    p = box.exec("sh", "-c", "tty; stty size", pty=True)
    said = p.stdout.read()
    same(True, "/dev/pts/" in said and len(said.split()) == 3)
    same(0, p.wait())
    p = box.exec("head", "-c", "3000000", "/dev/zero", text=False)
    same(3_000_000, len(p.stdout.read()))
    try:
        box.exec("echo", "x" * (1 << 16))
        raise AssertionError("a command line over 64 KiB was taken")
    except modal.exception.InvalidError:
        same(True, True)


def files(box):
    fs = box.filesystem
    content = b"a line\n" * 300_000
    fs.make_directory("/tmp/some/folder")
    fs.write_bytes(content, "/tmp/some/folder/file")
    same(content, fs.read_bytes("/tmp/some/folder/file"))
    same(["file"], [entry.name for entry in fs.list_files("/tmp/some/folder")])
    same(len(content), fs.stat("/tmp/some/folder/file").size)
    fs.remove("/tmp/some", recursive=True)
    try:
        fs.read_bytes("/tmp/some/folder/file")
        raise AssertionError("a file that is not there was read")
    except modal.exception.SandboxFilesystemNotFoundError:
        same(True, True)


def ports(box):
    p = box.exec("python3", "-u", "-m", "http.server", "8000", "--bind", "127.0.0.1", "--directory", "/etc")
    next(iter(p.stdout))
    url = box.tunnels()[8000].url
    trusted = ssl.create_default_context(cafile=os.environ["SIMULATOR_CA"])
    with urllib.request.urlopen(url + "/hostname", context=trusted) as answer:
        same(200, answer.status)


def life(app, image, first, **more):
    box = modal.Sandbox.create(
        app=app, image=image, name="python", timeout=300, cpu=0.5, memory=256, encrypted_ports=[8000],
        env={"GREETING": "hello"}, tags={"owner": "tests"}, **more,
    )
    same(first, len(box.object_id) == 25)
    programs(box)
    files(box)
    ports(box)
    same(None, box.poll())
    same({"owner": "tests"}, modal.Sandbox.from_id(box.object_id).get_tags())
    same(box.object_id, modal.Sandbox.from_name("sdk", "python").object_id)
    same([box.object_id], [b.object_id for b in modal.Sandbox.list(app_id=app.app_id, tags={"owner": "tests"})])
    try:
        modal.Sandbox.create(app=app, image=image, name="python", **more)
        raise AssertionError("a second sandbox of one name was made")
    except AlreadyExistsError:
        same(True, True)
    if not first:
        box.filesystem.write_text("kept", "/root/kept")
        copy = modal.Sandbox.create(app=app, image=box.snapshot_filesystem(), timeout=300)
        same("kept", copy.filesystem.read_text("/root/kept"))
        copy.terminate()
    box.terminate()
    box.wait(raise_on_termination=False)
    same(137, box.returncode)


def networks(app, image):
    try:
        modal.Sandbox.create(app=app, image=image, block_network=True, encrypted_ports=[8000])
        raise AssertionError("ports of a blocked sandbox were taken")
    except modal.exception.InvalidError:
        same(True, True)
    blocked = modal.Sandbox.create(app=app, image=image, block_network=True, timeout=300)
    p = blocked.exec("cat")
    p.stdin.write(b"usable")
    p.stdin.write_eof()
    p.stdin.drain()
    same("usable", p.stdout.read())
    blocked.terminate()


def ends(app, image):
    short = modal.Sandbox.create("sh", "-c", "echo said; exit 3", app=app, image=image, timeout=300)
    short.wait()
    same((3, "said\n"), (short.returncode, short.stdout.read()))
    timed = modal.Sandbox.create(app=app, image=image, timeout=1)
    try:
        timed.wait()
    except modal.exception.SandboxTimeoutError:
        pass
    same(124, timed.returncode)


def refusals():
    try:
        modal.App.lookup("nothing-of-the-kind")
        raise AssertionError("an app that is not there was found")
    except NotFoundError:
        same(True, True)


def main():
    first = os.environ.get("MODAL_SANDBOX_V2") == "0"
    app = modal.App.lookup("sdk", create_if_missing=True)
    image = modal.Image.from_registry("debian:12")
    life(app, image, first)
    if not first:
        life(app, image, True, gpu="T4")
        networks(app, image)
        ends(app, image)
        refusals()
    print(f"modal {modal.__version__}: {checks} checks")


sys.exit(main())
