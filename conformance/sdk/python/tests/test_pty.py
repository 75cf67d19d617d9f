"""Pseudo-terminals: input, resize, coming back, and their ends."""

import asyncio

import pytest
from e2b import CommandExitException, NotFoundException, PtySize

from conftest import done, eventually


class Terminal:
    """One terminal of either client, with all its output collected."""

    def __init__(self, sandbox, flavour):
        self.sandbox, self.flavour, self.output, self.handle, self.task = sandbox, flavour, bytearray(), None, None

    async def open(self, **options):
        if self.flavour == "async":
            options["on_data"] = self.output.extend
        self.handle = await done(self.sandbox.pty.create(PtySize(24, 80), timeout=60, **options))
        return await self._follow()

    async def reopen(self, pid):
        options = {"on_data": self.output.extend} if self.flavour == "async" else {}
        self.handle = await done(self.sandbox.pty.connect(pid, **options))
        return await self._follow()

    async def _follow(self):
        wait = self.handle.wait
        if self.flavour == "sync":
            self.task = asyncio.create_task(asyncio.to_thread(wait, on_pty=self.output.extend))
        else:
            self.task = asyncio.create_task(wait())
        return self

    async def type(self, text):
        await done(self.sandbox.pty.send_stdin(self.handle.pid, text.encode()))

    async def shows(self, text):
        await eventually(lambda: text.encode() in self.output)


@pytest.fixture
def terminal(sandbox, flavour):
    return Terminal(sandbox, flavour)


async def test_size_and_resize(sandbox, terminal):
    await terminal.open()
    await terminal.type("echo cols=$(tput cols) rows=$(tput lines)\n")
    await terminal.shows("cols=80 rows=24")
    await done(sandbox.pty.resize(terminal.handle.pid, PtySize(40, 100)))
    await terminal.type("echo cols=$(tput cols) rows=$(tput lines)\n")
    await terminal.shows("cols=100 rows=40")
    await terminal.type("exit\n")
    assert (await terminal.task).exit_code == 0


async def test_environment_user_and_folder(terminal):
    await terminal.open(envs={"ABC": "123"}, cwd="/", user="root")
    await terminal.type("echo $ABC-$TERM-$(pwd)-$(whoami)-\n")
    await terminal.shows("123-xterm-256color-/-root-")
    await terminal.type("exit 5\n")
    with pytest.raises(CommandExitException) as failure:
        await terminal.task
    assert failure.value.exit_code == 5


async def test_end_of_input_ends_the_shell(terminal):
    await terminal.open()
    await terminal.shows("$ ")
    await terminal.type("\x04")
    assert (await terminal.task).exit_code == 0


async def test_interrupt(terminal):
    await terminal.open()
    # The program itself says that it runs: a Ctrl-C that comes while the shell is still starting it reaches the shell alone.
    await terminal.type("sh -c 'echo go; exec sleep 300'\n")
    await terminal.shows("go\r\n")
    await terminal.type("\x03")
    await terminal.type("echo still-$((40+2))\n")
    await terminal.shows("still-42")
    await terminal.type("exit 0\n")
    assert (await terminal.task).exit_code == 0


async def test_kill(sandbox, terminal):
    await terminal.open()
    assert await done(terminal.handle.kill()) is True
    with pytest.raises(CommandExitException) as failure:
        await terminal.task
    assert failure.value.error == "signal: killed"
    assert await done(sandbox.pty.kill(terminal.handle.pid)) is False
    with pytest.raises(NotFoundException):
        await done(sandbox.pty.send_stdin(terminal.handle.pid, b"x"))


async def test_coming_back_sees_only_what_is_new(sandbox, flavour, terminal, token):
    handle = await done(sandbox.pty.create(PtySize(24, 80), timeout=60, **({"on_data": terminal.output.extend} if flavour == "async" else {})))
    await done(sandbox.pty.send_stdin(handle.pid, f"export MARK=before; clear; touch /tmp/{token}\n".encode()))
    await eventually(lambda: sandbox.files.exists(f"/tmp/{token}"))  # until then the shell may still show what was typed
    await done(handle.disconnect())
    terminal.output.clear()
    await terminal.reopen(handle.pid)
    await terminal.type("echo $MARK-and-after\n")
    await terminal.shows("before-and-after")
    assert b"export" not in terminal.output
    await terminal.type("exit\n")
    assert (await terminal.task).exit_code == 0


async def test_listed_like_a_command(sandbox, terminal):
    await terminal.open()
    item = next(item for item in await done(sandbox.commands.list()) if item.pid == terminal.handle.pid)
    assert (item.cmd, item.args) == ("/bin/bash", ["-i", "-l"])
    await done(terminal.handle.kill())
    with pytest.raises(CommandExitException):
        await terminal.task


async def test_streamed_input(sandbox, flavour, terminal):
    await terminal.open()
    if flavour == "sync":
        await asyncio.to_thread(sandbox.pty.stream_input, terminal.handle.pid, ["echo typed-", "$((6*7))\n"])
    else:
        async with sandbox.pty.stream_input(terminal.handle.pid) as stream:
            await stream.send("echo typed-")
            await stream.send("$((6*7))\n")
    await terminal.shows("typed-42")
    await done(terminal.handle.kill())
    with pytest.raises(CommandExitException):
        await terminal.task
