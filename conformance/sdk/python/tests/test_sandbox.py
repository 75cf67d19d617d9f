"""Create, connect, info, time-outs and kill."""

import asyncio
import time
from datetime import datetime, timedelta, timezone

import pytest
from e2b import SandboxException, SandboxNotFoundException
from packaging.version import Version

from conftest import done, eventually
from environment import MEMORY_MB, SERVED


async def test_create_with_nothing_chosen(make):
    box = await make(timeout=None)
    info = await done(box.get_info())
    assert info.sandbox_id == box.sandbox_id
    assert info.state.value == "running"
    assert (info.cpu_count, info.memory_mb) == (2, MEMORY_MB)
    assert Version(info.envd_version) >= Version("0.6.4")
    assert info.name == "base"
    assert timedelta(seconds=290) < info.end_at - info.started_at <= timedelta(seconds=301)
    assert abs(datetime.now(timezone.utc) - info.started_at) < timedelta(seconds=60)


async def test_ids_fit_into_host_names(make):
    box = await make()
    assert box.sandbox_id.isalnum() and box.sandbox_id.islower()
    assert len(f"65535-{box.sandbox_id}") <= 63


async def test_ready_as_soon_as_created(make):
    box = await make()
    assert (await done(box.commands.run("echo now"))).stdout == "now\n"


async def test_create_with_options(make):
    metadata = {"user": "a b", "clé": "c&d=é"}
    box = await make(timeout=77, metadata=metadata, envs={"COLOUR": "blue green"})
    info = await done(box.get_info())
    assert info.metadata == metadata
    assert timedelta(seconds=70) < info.end_at - info.started_at <= timedelta(seconds=78)
    assert (await done(box.commands.run("echo $COLOUR"))).stdout == "blue green\n"
    assert (await done(box.commands.run("env"))).stdout.count("COLOUR=") == 1


@pytest.mark.parametrize("template", ["node", "python"])
async def test_other_templates(make, template):
    box = await make(template=template)
    command = "node --version" if template == "node" else "python --version"
    assert (await done(box.commands.run(command))).exit_code == 0


async def test_unknown_template_says_which_exist(sdk):
    with pytest.raises(SandboxException, match="404.*base"):
        await done(sdk.create(template="no-such-template"))


@pytest.mark.parametrize("timeout", [0, -1, 24 * 3600 + 1])
async def test_impossible_timeout(sdk, timeout):
    with pytest.raises(SandboxException, match="^400") as refusal:
        await done(sdk.create(timeout=timeout))
    assert refusal.value.status_code == 400


async def test_connect_reaches_the_same_sandbox(make, sdk):
    box = await make()
    await done(box.files.write("/tmp/mark", "mine"))
    again = await done(sdk.connect(box.sandbox_id))
    assert again.sandbox_id == box.sandbox_id
    assert await done(again.files.read("/tmp/mark")) == "mine"
    assert await done(again.is_running())


async def test_connect_only_extends(make, sdk):
    box = await make(timeout=200)
    before = (await done(box.get_info())).end_at
    await done(sdk.connect(box.sandbox_id, timeout=20))
    assert (await done(box.get_info())).end_at == before
    await done(box.connect(timeout=600))
    assert (await done(box.get_info())).end_at > before + timedelta(seconds=300)


async def test_connect_to_unknown(sdk):
    with pytest.raises(SandboxNotFoundException):
        await done(sdk.connect("idoesnotexist000000000"))


async def test_set_timeout_moves_the_end_both_ways(make):
    box = await make(timeout=200)
    await done(box.set_timeout(600))
    longer = (await done(box.get_info())).end_at
    await done(box.set_timeout(30))
    shorter = (await done(box.get_info())).end_at
    assert longer - shorter > timedelta(seconds=500)


async def test_set_timeout_by_id_and_of_unknown(make, sdk):
    box = await make(timeout=200)
    await done(sdk.set_timeout(box.sandbox_id, 500))
    assert (await done(sdk.get_info(box.sandbox_id))).end_at > datetime.now(timezone.utc) + timedelta(seconds=400)
    with pytest.raises(SandboxNotFoundException):
        await done(sdk.set_timeout("idoesnotexist000000000", 10))


async def test_expiry_ends_the_sandbox(make, sdk):
    box = await make(timeout=2)
    started = time.monotonic()

    async def gone():
        return not await done(box.is_running())

    await eventually(gone)
    assert time.monotonic() - started < 20
    with pytest.raises(SandboxNotFoundException):
        await done(sdk.get_info(box.sandbox_id))


async def test_kill_twice(make, sdk):
    box = await make()
    assert await done(box.is_running()) is True
    assert await done(box.kill()) is True
    assert await done(box.kill()) is False
    assert await done(sdk.kill(box.sandbox_id)) is False
    assert await done(box.is_running()) is False
    with pytest.raises(SandboxNotFoundException):
        await done(box.get_info())
    with pytest.raises(SandboxNotFoundException):  # also where fork is not served
        await done(box.fork())


async def test_sandboxes_are_apart(make):
    first, second = await make(), await make()
    await done(first.files.write("/home/user/only-here", "1"))
    assert not await done(second.files.exists("/home/user/only-here"))
    names = [(await done(box.commands.run("hostname; cat /proc/sys/kernel/random/uuid"))).stdout for box in (first, second)]
    assert names[0] != names[1]


async def test_what_cannot_be_served_is_refused_by_name(sdk):
    for options, field in (
        ({"volume_mounts": {"/data": "no-such-volume"}}, "volumeMounts"),
        ({"network": {"rules": {"a.example": [{"transform": {"headers": {"A": "${e2b.secrets.x}"}}}]}}}, "network.rules"),
    ):
        if field in SERVED:
            continue
        with pytest.raises(SandboxException, match=field) as refusal:
            await done(sdk.create(**options))
        assert refusal.value.status_code == 400


async def test_harmless_defaults_are_accepted(make):
    box = await make(
        lifecycle={"on_timeout": "kill", "auto_resume": False},
        allow_internet_access=True,
        network={"allow_out": [], "deny_out": [], "rules": {}, "allow_public_traffic": True},
    )
    info = await done(box.get_info())
    assert info.lifecycle is None or info.lifecycle["on_timeout"] == "kill"


async def test_idempotency_key_makes_one_sandbox(make, token):
    first, second = [await make(idempotency_key=token) for _ in range(2)]
    assert first.sandbox_id == second.sandbox_id


async def test_many_at_once(sdk, flavour):
    def one():
        return sdk.create(timeout=60)

    if flavour == "sync":
        boxes = await asyncio.gather(*[asyncio.to_thread(one) for _ in range(4)])
        for box in boxes:
            box.kill()
    else:
        boxes = await asyncio.gather(*[one() for _ in range(4)])
        await asyncio.gather(*[box.kill() for box in boxes])
    assert len({box.sandbox_id for box in boxes}) == 4
