"""What the vendor's own SDK, sync and async, can do with a sandbox must work on the simulated cloud."""

import asyncio
import http.client
import json
import os
import time
import urllib.request

import pytest
from daytona import (
    AsyncDaytona,
    CreateSandboxFromImageParams,
    CreateSandboxFromSnapshotParams,
    CreateSnapshotParams,
    Daytona,
    DaytonaConfig,
    DaytonaError,
    DaytonaNotFoundError,
    FileUpload,
    ListSandboxesQuery,
    Resources,
    SessionExecuteRequest,
)
from daytona.common.pty import PtySize
from daytona_api_client import ApiClient, Configuration, CreateDockerRegistry, DockerRegistryApi

SIMULATOR = os.environ["DAYTONA_SIMULATOR"]
CONFIG = DaytonaConfig(api_key=os.environ["DAYTONA_SIMULATOR_KEY"], api_url=SIMULATOR + "/api", target="us")


@pytest.fixture
def client():
    return Daytona(CONFIG)


@pytest.fixture
def sandbox(client, request):
    made = client.create(CreateSandboxFromSnapshotParams(name=request.node.name.replace("_", "-"), labels={"suite": "python"}))
    yield made
    client.delete(made)


def test_life(client):
    made = client.create(
        CreateSandboxFromImageParams(image="python:3.12", name="python-life", labels={"who": "life"}, env_vars={"COLOUR": "blue"}, ttl_minutes=60)
    )
    try:
        assert made.state == "started"
        done = made.process.exec("echo $COLOUR; exit 4", cwd="/tmp")
        assert (done.result.strip(), done.exit_code) == ("blue", 4)
        assert [one.id for one in client.list(ListSandboxesQuery(labels={"who": "life"}))] == [made.id]
        with pytest.raises(DaytonaError):
            client.create(CreateSandboxFromSnapshotParams(name="python-life"))
    finally:
        client.delete(made, wait=True)
    with pytest.raises(DaytonaNotFoundError):
        client.get("python-life")


def test_sessions(sandbox):
    process = sandbox.process
    process.create_session("one")
    started = process.execute_session_command("one", SessionExecuteRequest(command="read l; echo out $l; echo err >&2; (exit 3)", run_async=True))
    process.send_session_command_input("one", started.cmd_id, "line\n")
    out, err = [], []
    asyncio.run(process.get_session_command_logs_async("one", started.cmd_id, out.append, err.append))
    assert ("".join(out), "".join(err)) == ("out line\n", "err\n")
    assert process.get_session_command("one", started.cmd_id).exit_code == 3
    process.delete_session("one")


def test_terminal(sandbox):
    terminal = sandbox.process.create_pty_session("pty", envs={"WORD": "carried"}, pty_size=PtySize(rows=20, cols=70))
    terminal.send_input("stty size; echo $WORD; exit 6\n")
    text = []
    ended = terminal.wait(on_data=lambda data: text.append(data.decode()))
    assert ended.exit_code == 6
    assert "20 70" in "".join(text) and "carried\r" in "".join(text)


def test_files(sandbox):
    big = os.urandom(2 << 20)
    sandbox.fs.upload_files([FileUpload(source=b"one", destination="/tmp/a/one"), FileUpload(source=big, destination="/tmp/a/big")])
    assert sandbox.fs.download_file("/tmp/a/big") == big
    assert sorted(one.name for one in sandbox.fs.list_files("/tmp/a")) == ["big", "one"]
    assert sandbox.fs.get_file_info("/tmp/a/one").size == 3
    with pytest.raises(DaytonaNotFoundError):
        sandbox.fs.download_file("/tmp/a/none")


def test_stop_and_start(sandbox):
    sandbox.fs.upload_file(b"kept", "/tmp/kept")
    sandbox.stop()
    assert sandbox.state == "stopped"
    with pytest.raises(DaytonaError, match="Is the Sandbox started"):
        sandbox.process.exec("true")
    sandbox.start()
    assert sandbox.state == "started"
    assert sandbox.fs.download_file("/tmp/kept") == b"kept"
    with pytest.raises(DaytonaError, match="not supported for sandbox class"):
        sandbox.pause()


def test_memory_of_a_machine(client):
    made = client.create(CreateSandboxFromSnapshotParams(name="python-machine", snapshot="daytona-vm-small"))
    try:
        made.process.create_session("one")
        started = made.process.execute_session_command("one", SessionExecuteRequest(command="read l; echo $l $((6 * 7))", run_async=True))
        made.pause()
        assert made.state == "paused"
        made.start()
        made.process.send_session_command_input("one", started.cmd_id, "still\n")
        out = []
        asyncio.run(made.process.get_session_command_logs_async("one", started.cmd_id, out.append, lambda _: None))
        assert "".join(out) == "still 42\n"
    finally:
        client.delete(made)


def test_snapshots(client, sandbox):
    sandbox.fs.upload_file(b"kept", "/tmp/kept")
    sandbox.create_snapshot("python-copy")
    snapshot = client.snapshot.get("python-copy")
    assert snapshot.state == "active"
    copy = client.create(CreateSandboxFromSnapshotParams(name="python-copies", snapshot="python-copy"))
    assert copy.fs.download_file("/tmp/kept") == b"kept"
    client.delete(copy, wait=True)
    assert "python-copy" in [one.name for one in client.snapshot.list().items]
    client.snapshot.delete(snapshot)
    with pytest.raises(DaytonaNotFoundError):
        client.snapshot.get("python-copy")
    made = client.snapshot.create(CreateSnapshotParams(name="python-made", image="python:3.12", resources=Resources(cpu=2, memory=1, disk=4)))
    assert (made.state, made.cpu, made.mem, made.disk) == ("active", 2, 1, 4)
    client.snapshot.delete(made)


def test_network(sandbox):
    sandbox.update_network_settings(network_block_all=False, network_allow_list="198.51.100.0/24")
    sandbox.refresh_data()
    assert (sandbox.network_block_all, sandbox.network_allow_list) == (False, "198.51.100.0/24")
    with pytest.raises(DaytonaError, match="CIDR"):
        sandbox.update_network_settings(network_allow_list="nothing")
    sandbox.update_network_settings(network_block_all=True)
    sandbox.refresh_data()
    assert sandbox.network_block_all


def test_registries():
    """The accounts at registries are the organization's, and not in the SDK but in the client that it is made on."""
    account = Configuration(host=SIMULATOR + "/api", access_token=os.environ["DAYTONA_SIMULATOR_KEY"])
    with ApiClient(account) as api:
        registries = DockerRegistryApi(api)
        made = registries.create_registry(
            CreateDockerRegistry(name="python-registry", url="https://registry.example", username="someone", password="a secret")
        )
        assert (made.name, made.username) == ("python-registry", "someone")
        listed = registries.list_registries()
        assert [one.id for one in listed if one.name == "python-registry"] == [made.id]
        assert "a secret" not in repr(listed) + repr(made)
        registries.delete_registry(made.id)
        assert made.id not in [one.id for one in registries.list_registries()]


def test_signed_preview(sandbox):
    sandbox.process.create_session("server")
    command = "python3 -m http.server 8000 --bind 127.0.0.1 --directory /etc"
    sandbox.process.execute_session_command("server", SessionExecuteRequest(command=command, run_async=True))
    signed = sandbox.create_signed_preview_url(8000, expires_in_seconds=300)
    end = time.monotonic() + 60
    while visit(signed.url) != 200:
        assert time.monotonic() < end
        time.sleep(0.02)
    sandbox.expire_signed_preview_url(8000, signed.token)
    assert visit(signed.url) == 307
    assert visit(sandbox.get_preview_link(8000).url) == 307


def visit(url):
    """The status of a preview, whose name only the simulator knows."""
    host = url.split("/")[2]
    connection = http.client.HTTPConnection("127.0.0.1", int(host.rsplit(":", 1)[1]), timeout=20)
    try:
        connection.request("GET", "/hostname", headers={"Host": host})
        return connection.getresponse().status
    finally:
        connection.close()


def test_errors(client):
    stranger = Daytona(DaytonaConfig(api_key="dtn_wrong", api_url=SIMULATOR + "/api", target="us"))
    with pytest.raises(DaytonaError) as refused:
        stranger.create()
    assert refused.value.status_code == 401
    body = json.dumps({"fault": "rate limit", "operation": "create", "times": 1}).encode()
    urllib.request.urlopen(urllib.request.Request(SIMULATOR + "/_simulator/faults", data=body, method="POST")).close()
    with pytest.raises(DaytonaError) as limited:
        client.create(CreateSandboxFromSnapshotParams(name="never"))
    assert limited.value.status_code == 429


async def test_async():
    async with AsyncDaytona(CONFIG) as client:
        made = await client.create(CreateSandboxFromSnapshotParams(name="python-async", labels={"who": "async"}))
        try:
            done = await made.process.exec("echo $((6 * 7))")
            assert done.result.strip() == "42"
            await made.fs.upload_file(b"content", "/tmp/file")
            assert await made.fs.download_file("/tmp/file") == b"content"
            await made.process.create_session("one")
            started = await made.process.execute_session_command("one", SessionExecuteRequest(command="echo out; echo err >&2", run_async=True))
            out, err = [], []
            await made.process.get_session_command_logs_async("one", started.cmd_id, out.append, err.append)
            assert ("".join(out), "".join(err)) == ("out\n", "err\n")
            await made.stop()
            assert made.state == "stopped"
            await made.start()
            assert await made.fs.download_file("/tmp/file") == b"content"
            await made.create_snapshot("python-async-copy")
            snapshot = await client.snapshot.get("python-async-copy")
            assert snapshot.state == "active"
            await client.snapshot.delete(snapshot)
            await made.update_network_settings(network_block_all=True)
            await made.refresh_data()
            assert made.network_block_all
        finally:
            await client.delete(made)
