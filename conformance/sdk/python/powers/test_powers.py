"""Pause, resume, snapshots and live network rules, as the pool of ISTHMUS_TEST_POWERS has them.

It lists what there is, for example "pause=memory snapshot=filesystem live_network". What is not listed must be refused
by name: each case tries one or the other.
"""

import os

import httpx
import pytest
from e2b import NotFoundException, SandboxException, SandboxQuery, SandboxState, TimeoutException

from conftest import done, eventually
from environment import surroundings


@pytest.fixture(scope="module")
def powers():
    return dict(word.partition("=")[::2] for word in surroundings("ISTHMUS_TEST_POWERS").split())


async def refused(call, name):
    """The call is refused by name."""
    with pytest.raises(SandboxException, match=name) as refusal:
        await done(call())
    assert refusal.value.status_code == 400


async def state(box):
    return (await done(box.get_info())).state


async def test_pause_and_connect(make, sdk, powers):
    box = await make(envs={"KEPT": "yes"})
    if "pause" not in powers:
        await refused(lambda: box.pause(), "pauseSandbox is not supported here")
        assert await state(box) == SandboxState.RUNNING
        return
    await done(box.files.write("/home/user/kept", "first"))
    assert await done(box.pause()) is True
    assert await done(box.pause()) is False
    assert await done(box.beta_pause()) is False
    assert await state(box) == SandboxState.PAUSED
    assert not await done(box.is_running())
    with pytest.raises((TimeoutException, SandboxException)):
        await done(box.commands.run("true"))
    with pytest.raises(NotFoundException):
        await done(box.set_timeout(60))

    again = await done(sdk.connect(box.sandbox_id, timeout=120))
    assert again.sandbox_id == box.sandbox_id
    assert await state(again) == SandboxState.RUNNING
    assert await done(again.files.read("/home/user/kept")) == "first"
    assert (await done(again.commands.run("echo $KEPT"))).stdout == "yes\n"
    assert (await done(box.commands.run("echo same"))).stdout == "same\n", "the old object works again"
    info = await done(again.get_info())
    assert 60 < (info.end_at - info.started_at).total_seconds() < 180, "the clock starts anew"


async def test_pause_modes(make, powers):
    if "pause" not in powers:
        pytest.skip("ISTHMUS_TEST_POWERS names no pause")
    box = await make()
    handle = await done(box.commands.run("sleep 1000", background=True))
    if powers["pause"] == "memory":
        assert await done(box.pause(mode="full"))
        await done(box.connect(timeout=120))
        assert handle.pid in [p.pid for p in await done(box.commands.list())], "processes go on"
        await done(box.pause(mode="full"))
        await refused(lambda: box.connect(on_resume="reboot"), "memory: false is not supported here")
        await done(box.connect(timeout=120))
    else:
        await refused(lambda: box.pause(mode="full"), "memory: true is not supported here")
        assert handle.pid in [p.pid for p in await done(box.commands.list())], "nothing was changed"
    assert await done(box.pause(mode="filesystem", strict=True))
    await done(box.connect(timeout=120, on_resume="reboot"))
    assert await done(box.commands.list()) == [], "it was started anew"


async def test_kill_of_a_paused_one(make, sdk, powers):
    if "pause" not in powers:
        pytest.skip("ISTHMUS_TEST_POWERS names no pause")
    box = await make(metadata={"case": "kill"})
    await done(box.pause())
    pages = sdk.list(query=SandboxQuery(state=[SandboxState.PAUSED], metadata={"case": "kill"}))
    assert [item.sandbox_id for item in await done(pages.next_items())] == [box.sandbox_id]
    pages = sdk.list(query=SandboxQuery(state=[SandboxState.RUNNING], metadata={"case": "kill"}))
    assert await done(pages.next_items()) == []
    assert await done(box.kill()) is True
    assert await done(box.kill()) is False
    with pytest.raises(NotFoundException):
        await done(sdk.connect(box.sandbox_id))


async def test_pause_at_the_timeout(make, sdk, powers):
    if "pause" not in powers:
        await refused(lambda: sdk.create(lifecycle={"on_timeout": "pause"}), "autoPause")
        return
    box = await make(timeout=6, lifecycle={"on_timeout": "pause"})
    await done(box.files.write("/home/user/kept", "by itself"))
    await eventually(lambda: paused(box))
    info = await done(box.get_info())
    assert info.lifecycle["on_timeout"] == "pause"
    await done(box.connect(timeout=60))
    assert await done(box.files.read("/home/user/kept")) == "by itself"


async def paused(box):
    return await state(box) == SandboxState.PAUSED


async def test_traffic_wakes(make, sdk, powers):
    if powers.get("pause") != "memory":
        await refused(lambda: sdk.create(lifecycle={"on_timeout": "pause", "auto_resume": True}), "autoResume")
        return
    box = await make(lifecycle={"on_timeout": "pause", "auto_resume": True})
    await done(box.files.write("/home/user/index.html", "here\n"))
    # Without an open stream: when a pause breaks one, the SDK asks envd whether the sandbox runs, and that wakes it.
    await done(box.commands.run("cd /home/user && (setsid python3 -m http.server 8000 >/dev/null 2>&1 </dev/null &)"))
    headers = {"E2b-Sandbox-Id": box.sandbox_id, "E2b-Sandbox-Port": "8000"}
    url = os.environ["E2B_SANDBOX_URL"]
    async with httpx.AsyncClient(timeout=60) as visitor:

        async def serves():
            answer = await visitor.get(url + "/index.html", headers=headers)
            return answer.status_code == 200 and answer.text == "here\n"

        await eventually(serves)
        await done(box.pause())
        envd = {"E2b-Sandbox-Id": box.sandbox_id, "E2b-Sandbox-Port": "49983"}
        denied = await visitor.get(url + "/files?path=/home/user/index.html", headers=envd)
        assert denied.status_code == 403 and await state(box) == SandboxState.PAUSED
        assert await serves(), "a request to the port wakes it, and is answered"
        assert await state(box) == SandboxState.RUNNING
        await done(box.pause())
        assert await done(box.files.read("/home/user/index.html")) == "here\n", "so does the client with its token"
        await done(box.pause(mode="filesystem"))
        assert (await visitor.get(url + "/index.html", headers=headers)).status_code == 502
        assert await state(box) == SandboxState.PAUSED


async def test_snapshots(make, sdk, powers, token):
    box = await make(envs={"KEPT": "yes"})
    if "snapshot" not in powers:
        await refused(lambda: box.create_snapshot(), "createSnapshot is not supported here")
        return
    await done(box.files.write("/home/user/kept", "first"))
    plain = await done(box.create_snapshot())
    named = await done(box.create_snapshot(name=f"case-{token}"))
    assert (named.snapshot_id, named.names) == (f"case-{token}:default", [f"case-{token}"])
    assert (await done(box.commands.run("cat kept"))).stdout == "first", "it runs on"
    await done(box.files.write("/home/user/kept", "second"))
    for reference in (plain.snapshot_id, named.snapshot_id, f"case-{token}"):
        copy = await make(template=reference)
        assert await done(copy.files.read("/home/user/kept")) == "first"
        await done(copy.kill())
    mine = [one.snapshot_id for one in await done(box.list_snapshots().next_items())]
    assert mine == [named.snapshot_id, plain.snapshot_id]
    found = await done(sdk.list_snapshots(name=f"case-{token}").next_items())
    assert [one.snapshot_id for one in found] == [named.snapshot_id]
    found = await done(sdk.list_snapshots(name=plain.snapshot_id.removesuffix(":default")).next_items())
    assert [one.snapshot_id for one in found] == [plain.snapshot_id]
    pages, seen = box.list_snapshots(limit=1), []
    while pages.has_next:
        seen += await done(pages.next_items())
    assert len(seen) == 2
    await done(box.kill())
    copy = await make(template=plain.snapshot_id)
    assert (await done(copy.commands.run("cat kept"))).stdout == "first", "it outlives its sandbox"
    await done(copy.kill())
    for one in (plain, named):
        assert await done(sdk.delete_snapshot(one.snapshot_id)) is True
        assert await done(sdk.delete_snapshot(one.snapshot_id)) is False
    with pytest.raises(SandboxException, match="404"):
        await done(sdk.create(template=plain.snapshot_id))


async def test_snapshot_of_a_paused_one(make, powers):
    if "snapshot" not in powers or "pause" not in powers:
        pytest.skip("ISTHMUS_TEST_POWERS names no pause and snapshot")
    box = await make()
    await done(box.pause())
    with pytest.raises(NotFoundException):
        await done(box.create_snapshot())


async def test_network_of_a_running_one(make, powers):
    box = await make()
    if "live_network" not in powers:
        await refused(lambda: box.update_network({"deny_out": ["0.0.0.0/0"]}), "updateSandboxNetwork is not supported here")
        return
    await done(box.update_network({"deny_out": ["0.0.0.0/0"]}))
    info = await done(box.get_info())
    assert info.network["deny_out"] == ["0.0.0.0/0"]
    await done(box.update_network({}))


async def test_network_lists(make, sdk, powers):
    lists = {"allow_out": ["1.1.1.1"], "deny_out": ["0.0.0.0/0"]}
    if "allow_cidrs" not in powers and "egress_lists" not in powers:
        await refused(lambda: sdk.create(network=lists), "network.allowOut")
        return
    box = await make(network=lists)
    info = await done(box.get_info())
    assert (info.network["allow_out"], info.network["deny_out"]) == (lists["allow_out"], lists["deny_out"])


async def test_network_rules(make, sdk, powers, token):
    site = surroundings("ISTHMUS_TEST_INTERNET")
    host, token = site.split("/")[2], f"conformance-secret-{token}"

    def rules(secret):
        return {"rules": {host: [{"transform": {"headers": {"X-Conformance": secret}}}]}}

    if "inject_headers" not in powers:
        await refused(lambda: sdk.create(network=rules(token)), "network.rules")
        return
    box = await make(network=rules(token))

    async def heard():
        return (await done(box.commands.run(f"curl -sS -m 20 {site}header"))).stdout

    assert await heard() == token, "the server outside hears what the sandbox does not know"
    assert (await done(box.commands.run("env"))).stdout.find(token) == -1
    info = await done(box.get_info())
    assert list(info.network["rules"]) == [host] and token not in repr(info)
    assert token not in repr(await done(sdk.list().next_items()))
    if "live_network" in powers:
        await done(box.update_network(rules(f"{token}-too")))
        assert await heard() == f"{token}-too"
        assert token not in repr(await done(box.get_info()))
        await done(box.update_network({}))
        assert await heard() == ""
