"""Commands in the foreground and in the background, and coming back to them."""

import asyncio
import time

import pytest
from e2b import (
    AuthenticationException,
    CommandExitException,
    InvalidArgumentException,
    NotFoundException,
    TimeoutException,
)

from conftest import done, eventually


@pytest.mark.parametrize(
    "text",
    ["hello world", "!@#$%^&*()_+-=[]{};:,.<>/?", "one\ntwo\n\nfour", "päivää 🙂 日本語", ""],
)
async def test_output_exactly(sandbox, text, token):
    await done(sandbox.files.write(f"/tmp/{token}", text))
    result = await done(sandbox.commands.run(f"cat /tmp/{token}; echo"))
    assert (result.stdout, result.stderr, result.exit_code, result.error) == (text + "\n", "", 0, None)


async def test_both_streams_and_callbacks(sandbox):
    out, err = [], []
    result = await done(
        sandbox.commands.run("echo one; echo bad >&2; echo two", on_stdout=out.append, on_stderr=err.append)
    )
    assert "".join(out) == result.stdout == "one\ntwo\n"
    assert "".join(err) == result.stderr == "bad\n"


async def test_output_arrives_while_it_runs(sandbox, token):
    seen = []

    def on_stdout(text):
        seen.append(text)
        return sandbox.files.write(f"/tmp/{token}", "")  # the command goes on when what it said has arrived

    await done(sandbox.commands.run(f"echo first; until [ -e /tmp/{token} ]; do sleep 0.05; done; echo last", on_stdout=on_stdout))
    assert seen == ["first\n", "last\n"]


@pytest.mark.parametrize("code", [1, 3, 126, 127, 255])
async def test_exit_codes(sandbox, code):
    with pytest.raises(CommandExitException) as failure:
        await done(sandbox.commands.run(f"echo out; echo err >&2; exit {code}"))
    assert failure.value.exit_code == code
    assert failure.value.error == f"exit status {code}"
    assert (failure.value.stdout, failure.value.stderr) == ("out\n", "err\n")


async def test_unknown_command_is_127(sandbox):
    with pytest.raises(CommandExitException) as failure:
        await done(sandbox.commands.run("no-such-program-here"))
    assert failure.value.exit_code == 127
    assert "not found" in failure.value.stderr


async def test_broken_utf8_is_replaced_once(sandbox, token):
    await done(sandbox.files.write(f"/tmp/{token}", b"a" * 8191 + b"\xe2" + b"b"))
    result = await done(sandbox.commands.run(f"cat /tmp/{token}"))
    assert result.stdout == "a" * 8191 + "\ufffd" + "b"


async def test_split_characters_are_whole(sandbox):
    result = await done(sandbox.commands.run(r"printf '\xe2'; sleep 0.2; printf '\x82'; sleep 0.2; printf '\xac'"))
    assert result.stdout == "€"


async def test_big_output_is_complete(sandbox):
    result = await done(sandbox.commands.run("seq 1 400000"))
    lines = result.stdout.split("\n")
    assert len(lines) == 400001 and lines[-2] == "400000"


async def test_user_home_and_shell(sandbox):
    result = await done(sandbox.commands.run("whoami; id -u; pwd; echo $HOME $USER $LOGNAME; shopt -q login_shell && echo login"))
    assert result.stdout == "user\n1000\n/home/user\n/home/user user user\nlogin\n"
    result = await done(sandbox.commands.run("whoami; pwd; echo $HOME", user="root"))
    assert result.stdout == "root\n/root\n/root\n"


async def test_unknown_user(sandbox):
    with pytest.raises(AuthenticationException, match="nobody-there"):
        await done(sandbox.commands.run("true", user="nobody-there"))


async def test_sudo_needs_no_password(sandbox):
    result = await done(sandbox.commands.run("sudo whoami; sudo -u user whoami; sudo -n id -u"))
    assert result.stdout == "root\nuser\n0\n"


@pytest.mark.parametrize(
    "cwd,expected", [("/", "/"), ("/usr/lib", "/usr/lib"), ("~", "/home/user"), ("here", "/home/user/here"), (None, "/home/user")]
)
async def test_working_directory(sandbox, cwd, expected):
    await done(sandbox.files.make_dir("/home/user/here"))
    assert (await done(sandbox.commands.run("pwd", cwd=cwd))).stdout == expected + "\n"


async def test_missing_working_directory(sandbox):
    with pytest.raises(InvalidArgumentException, match="cwd '/no/such/place' does not exist"):
        await done(sandbox.commands.run("pwd", cwd="/no/such/place"))


async def test_variables_reach_the_command_only(sandbox):
    variables = {"SECRET_NAME": "a 'quoted' $value", "ÜMLAUT": "x"}
    result = await done(sandbox.commands.run("python3 -c 'import os; print(os.environ[\"SECRET_NAME\"])'; echo \"$SECRET_NAME\"", envs=variables))
    assert result.stdout == "a 'quoted' $value\n" * 2
    leak = await done(sandbox.commands.run("env; sudo env; sudo cat /proc/1/environ 2>/dev/null | tr '\\0' '\\n'"))
    assert "SECRET_NAME" not in leak.stdout


async def test_sandbox_variables(sandbox):
    result = await done(sandbox.commands.run("echo $E2B_SANDBOX $E2B_SANDBOX_ID"))
    assert result.stdout == f"true {sandbox.sandbox_id}\n"


async def test_timeout_ends_the_command(sandbox, token):
    started = time.monotonic()
    with pytest.raises(TimeoutException):
        await done(sandbox.commands.run(f"exec -a {token} sleep 300", timeout=1))
    assert time.monotonic() - started < 30

    async def gone():
        return not [p for p in await done(sandbox.commands.list()) if any(token in arg for arg in p.args)]

    await eventually(gone)


async def test_timeout_while_waiting(sandbox):
    command = await done(sandbox.commands.run("sleep 300", background=True, timeout=4))
    with pytest.raises(TimeoutException):
        await done(command.wait())


async def test_background_and_list(sandbox, token):
    command = await done(sandbox.commands.run(f"sleep 300 && echo {token}", background=True, cwd="/tmp", envs={"K": "v"}))
    listed = {item.pid: item for item in await done(sandbox.commands.list())}
    item = listed[command.pid]
    assert (item.cmd, item.args) == ("/bin/bash", ["-l", "-c", f"sleep 300 && echo {token}"])
    assert (item.cwd, item.envs) == ("/tmp", {"K": "v"})
    assert await done(command.kill()) is True
    with pytest.raises(CommandExitException) as failure:
        await done(command.wait())
    assert (failure.value.exit_code, failure.value.error) == (-1, "signal: killed")
    with pytest.raises(CommandExitException):
        await done(sandbox.commands.run(f"kill -0 {command.pid}"))
    assert await done(command.kill()) is False


async def test_kill_of_unknown(sandbox):
    assert await done(sandbox.commands.kill(999999)) is False


async def test_connect_to_unknown(sandbox):
    with pytest.raises(NotFoundException):
        await done(sandbox.commands.connect(999999))


async def test_coming_back_by_pid(sandbox, sdk, token):
    first = await done(sandbox.commands.run(f"while [ ! -e /tmp/{token} ]; do sleep 0.05; done; echo end; exit 5", background=True))
    await done(first.disconnect())
    other = await done(sdk.connect(sandbox.sandbox_id))
    second = await done(other.commands.connect(first.pid))
    assert second.pid == first.pid
    await done(sandbox.files.write(f"/tmp/{token}", ""))
    with pytest.raises(CommandExitException) as failure:
        await done(second.wait())
    assert (failure.value.exit_code, failure.value.stdout) == (5, "end\n")


async def test_late_connect_still_gets_the_exit(sandbox):
    command = await done(sandbox.commands.run("exit 7", background=True))
    with pytest.raises(CommandExitException):
        await done(command.wait())
    late = await done(sandbox.commands.connect(command.pid))
    with pytest.raises(CommandExitException) as failure:
        await done(late.wait())
    assert failure.value.exit_code == 7


async def test_nothing_after_disconnect(sandbox, flavour, token):
    command = await done(sandbox.commands.run(f"while [ ! -e /tmp/{token} ]; do sleep 0.05; done; echo later; sleep 300", background=True))
    await done(command.disconnect())
    await done(sandbox.files.write(f"/tmp/{token}", ""))
    await asyncio.sleep(0.5)
    if flavour == "async":
        assert command.stdout == ""
    assert await done(sandbox.commands.kill(command.pid)) is True


async def test_signal_spares_children(sandbox, token):
    command = await done(sandbox.commands.run(f"bash -c 'exec -a {token} sleep 60' & echo started; wait", background=True))

    async def child():
        return (await done(sandbox.commands.run(f"pgrep -f '^{token}' || true"))).stdout.strip()

    await eventually(child)
    await done(command.kill())
    assert await child() != ""
    await done(sandbox.commands.run(f"pkill -f '^{token}'"))


async def test_end_waits_for_the_pipes(sandbox):
    started = time.monotonic()
    result = await done(sandbox.commands.run("(sleep 1.5; echo child) & echo parent"))
    assert result.stdout == "parent\nchild\n"
    assert time.monotonic() - started > 1.2


async def test_stop_signal_by_a_command(sandbox):
    command = await done(sandbox.commands.run("exec sleep 300", background=True))
    await done(sandbox.commands.run(f"kill -TERM {command.pid}"))
    with pytest.raises(CommandExitException) as failure:
        await done(command.wait())
    assert (failure.value.exit_code, failure.value.error) == (-1, "signal: terminated")


@pytest.mark.only("sync")
async def test_iterating_over_output(sandbox, flavour, token):
    command = sandbox.commands.run(f"echo a; until [ -e /tmp/{token} ]; do sleep 0.05; done; echo b >&2", background=True)
    seen = []
    for out, err, _ in command:
        seen.append((out, err))
        sandbox.files.write(f"/tmp/{token}", "")
    assert seen == [("a\n", None), (None, "b\n")]


async def test_output_not_retained(sandbox):
    out = []
    result = await done(sandbox.commands.run("echo kept nowhere", on_stdout=out.append, retain_output=False))
    assert (result.stdout, result.stderr, out) == (None, None, ["kept nowhere\n"])


async def test_twenty_at_once(sandbox, flavour):
    def one(number):
        return sandbox.commands.run(f"sleep 0.2; echo {number}")

    if flavour == "sync":
        results = await asyncio.gather(*[asyncio.to_thread(one, n) for n in range(20)])
    else:
        results = await asyncio.gather(*[one(n) for n in range(20)])
    assert [result.stdout for result in results] == [f"{n}\n" for n in range(20)]
