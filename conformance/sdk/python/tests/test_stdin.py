"""A command's standard input: one call each, streamed, and closed."""

import pytest
from e2b import CommandExitException, NotFoundException, SandboxException

from conftest import done


@pytest.mark.parametrize("data", ["hello", "", "!@#$%^&*()\t'\"", "one\ntwo\n", "ä🙂", b"\x00\xff\xfe binary"])
async def test_reaches_the_command_exactly(sandbox, data, token):
    command = await done(sandbox.commands.run(f"cat > /tmp/{token}", background=True, stdin=True))
    await done(sandbox.commands.send_stdin(command.pid, data))
    await done(sandbox.commands.close_stdin(command.pid))
    assert (await done(command.wait())).exit_code == 0
    expected = data.encode() if isinstance(data, str) else data
    assert await done(sandbox.files.read(f"/tmp/{token}", format="bytes")) == expected


async def test_by_the_handle_in_order(sandbox):
    command = await done(sandbox.commands.run("cat", background=True, stdin=True))
    for number in range(20):
        await done(command.send_stdin(f"{number}\n"))
    await done(command.close_stdin())
    result = await done(command.wait())
    assert result.stdout == "".join(f"{n}\n" for n in range(20))


async def test_closed_unless_asked(sandbox):
    assert (await done(sandbox.commands.run("cat; echo end"))).stdout == "end\n"
    command = await done(sandbox.commands.run("sleep 60", background=True))
    with pytest.raises(SandboxException, match="stdin"):
        await done(sandbox.commands.send_stdin(command.pid, "x"))
    await done(command.kill())


async def test_read_without_input_fails(sandbox):
    with pytest.raises(CommandExitException) as failure:
        await done(sandbox.commands.run("read line"))
    assert failure.value.exit_code == 1


async def test_close_twice_is_fine(sandbox):
    command = await done(sandbox.commands.run("cat; sleep 60", background=True, stdin=True))
    await done(command.close_stdin())
    await done(command.close_stdin())
    await done(command.kill())


async def test_of_unknown_process(sandbox):
    with pytest.raises(NotFoundException):
        await done(sandbox.commands.send_stdin(999999, "x"))
    with pytest.raises(NotFoundException):
        await done(sandbox.commands.close_stdin(999999))


async def test_streamed(sandbox, flavour):
    command = await done(sandbox.commands.run("head -n 3", background=True, stdin=True))
    if flavour == "sync":
        sandbox.commands.stream_input(command.pid, (f"line {n}\n" for n in range(3)))
    else:
        async with sandbox.commands.stream_input(command.pid) as stream:
            for n in range(3):
                await stream.send(f"line {n}\n")
    assert (await done(command.wait())).stdout == "line 0\nline 1\nline 2\n"


async def test_a_megabyte(sandbox):
    command = await done(sandbox.commands.run("wc -c", background=True, stdin=True))
    await done(command.send_stdin(b"x" * 1_000_000))
    await done(command.close_stdin())
    assert (await done(command.wait())).stdout.strip() == "1000000"
