"""Typed exceptions: credentials, unknown things, and a sandbox that dies under a call."""

import asyncio
import threading

import pytest
from e2b import AuthenticationException, ConnectionConfig, SandboxException, TimeoutException

from conftest import done, eventually
from environment import MEMORY_MB


@pytest.mark.parametrize("key", ["e2b_" + "0" * 40, "e2b_" + "f" * 40])
async def test_wrong_key(sdk, key):
    with pytest.raises(AuthenticationException):
        await done(sdk.create(api_key=key))
    with pytest.raises(AuthenticationException):
        await done(sdk.list(api_key=key).next_items())
    with pytest.raises(AuthenticationException):
        await done(sdk.kill("idoesnotexist000000000", api_key=key))


async def test_wrong_token(sandbox, sdk):
    """A client that knows the sandbox but not its token is refused, whatever it calls, as unauthenticated."""
    routing = {"E2b-Sandbox-Id": sandbox.sandbox_id, "E2b-Sandbox-Port": "49983"}
    for credentials in ({}, {"X-Access-Token": "wrong"}):
        stranger = sdk(
            sandbox_id=sandbox.sandbox_id,
            sandbox_domain=sandbox.sandbox_domain,
            envd_version=sandbox._envd_version,
            envd_access_token=None,
            traffic_access_token=None,
            connection_config=ConnectionConfig(extra_sandbox_headers={**routing, **credentials}),
        )
        for call in (
            lambda: stranger.commands.run("id"),
            lambda: stranger.commands.list(),
            lambda: stranger.files.list("/"),
            lambda: stranger.files.read("/etc/hostname"),
            lambda: stranger.files.write("/tmp/stranger", "x"),
        ):
            with pytest.raises(AuthenticationException):
                await done(call())
    assert not await done(sandbox.files.exists("/tmp/stranger"))


async def test_everything_fails_in_its_type_after_kill(make):
    box = await make()
    await done(box.kill())
    for call in (
        lambda: box.commands.run("echo"),
        lambda: box.commands.list(),
        lambda: box.files.list("/"),
        lambda: box.files.read("/etc/hostname"),
        lambda: box.files.write("/tmp/x", "x"),
    ):
        with pytest.raises(TimeoutException, match="was not found"):
            await done(call())


async def test_killed_during_a_command(make, flavour):
    box = await make()
    command = await done(box.commands.run("sleep 120", background=True))
    if flavour == "sync":
        threading.Timer(0.7, box.kill).start()
        with pytest.raises(TimeoutException, match="was killed or reached its end of life"):
            command.wait()
    else:
        waiting = asyncio.create_task(command.wait())
        await asyncio.sleep(0.7)
        await box.kill()
        with pytest.raises(TimeoutException, match="was killed or reached its end of life"):
            await waiting
    assert await done(box.is_running()) is False


async def test_end_of_life_during_a_command(make):
    box = await make(timeout=6)
    with pytest.raises(TimeoutException, match="was killed or reached its end of life"):
        await done(box.commands.run("sleep 120", timeout=60))


@pytest.mark.only("async")
async def test_killed_during_a_watch(make, flavour):
    box = await make()
    ended = []
    await box.files.watch_dir("/tmp", on_event=lambda event: None, on_exit=ended.append, timeout=0)
    await box.kill()
    await eventually(lambda: ended)
    assert isinstance(ended[0], TimeoutException)


async def test_out_of_memory_kills_the_command_only(make):
    box = await make()
    with pytest.raises(SandboxException):
        await done(box.commands.run(f"python3 -c 'x = bytearray({3 * MEMORY_MB} << 20)'", timeout=50))
    assert (await done(box.commands.run("echo alive"))).stdout == "alive\n"
