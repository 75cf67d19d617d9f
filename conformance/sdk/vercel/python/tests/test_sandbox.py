"""The vendor's Python SDK, unmodified, against the simulated cloud. It has a base URL, so nothing is in between."""

import os
import subprocess
import uuid

import pytest
from vercel.sandbox.sync import (
    NetworkPolicy,
    NetworkPolicySubnets,
    SandboxApiError,
    SandboxCredentials,
    SandboxPathNotFoundError,
    SandboxQueryByCreatedAt,
    SandboxServiceOptions,
    SandboxStreamError,
    SnapshotSource,
    SyncSandboxClient,
    TagFilter,
)


def unique(what):
    return f"{what}-{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="module")
def client():
    credentials = SandboxCredentials(
        token=os.environ["VERCEL_SIMULATOR_TOKEN"], team_id="team_simulated", project_id="prj_simulated"
    )
    options = SandboxServiceOptions(
        base_url=os.environ["VERCEL_SIMULATOR"] + "/api", credentials_factory=lambda: credentials
    )
    client = SyncSandboxClient.create(options=options)
    yield client
    client.close()


@pytest.fixture(scope="module")
def sandbox(client):
    with client.create_sandbox(
        name=unique("py"), ports=[3000], execution_time_limit=600, tags={"who": "py"}, persistent=False
    ) as sandbox:
        yield sandbox


def test_run(sandbox):
    done = sandbox.run_process("sh", ["-c", "echo out; echo err >&2; exit 3"], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
    done = sandbox.run_process("id", ["-u"], sudo=True, capture_output=True)
    assert done.stdout == "0\n"
    assert sandbox.run_process("sleep", ["600"], kill_after=0.2).returncode == 137


def test_input(sandbox):
    done = sandbox.run_process("wc", ["-c"], input=b"x" * 1_000_000, capture_output=True)
    assert done.stdout == "1000000\n"
    process = sandbox.create_process("cat", stdin=subprocess.PIPE)
    assert process.communicate(b"typed\n") == ("typed\n", "")
    assert process.returncode == 0


def test_process(sandbox):
    process = sandbox.create_process("sh", ["-c", "echo begun; exec sleep 600"])
    assert process.stdout.readline() == "begun\n"
    assert process.id in [one.id for one in sandbox.query_processes()]
    sandbox.get_process(process.id).kill()
    assert process.wait() == 137


def test_files(sandbox):
    sandbox.fs.mkdir("folder/inner")
    sandbox.fs.write_text("folder/inner/a", "one")
    sandbox.fs.write_bytes("/tmp/b", b"\x00\xff")
    assert sandbox.fs.read_text("folder/inner/a") == "one"
    assert sandbox.fs.read_bytes("/tmp/b") == b"\x00\xff"
    assert [one.path for one in sandbox.fs.listdir("folder")] == ["inner"]
    sandbox.fs.rename("folder/inner/a", "folder/b")
    assert sandbox.fs.exists("folder/b") and sandbox.fs.is_dir("folder/inner")
    sandbox.fs.remove("folder", recursive=True)
    with pytest.raises(SandboxPathNotFoundError):
        sandbox.fs.read_text("folder/b")


def test_terminal(sandbox):
    with sandbox.open_interactive("/bin/sh", cols=80, rows=24) as pty:
        pty.resize(90, 30)
        pty.stream.write(b"stty size; exit 5\n")
        shown = b""
        while piece := pty.stream.read(4096):
            shown += piece
        assert b"30 90" in shown
        assert pty.wait() == 5


def test_network(sandbox):
    session = sandbox.session().update_network_policy(
        NetworkPolicy.custom(
            allow={"*.example.org": []}, subnets=NetworkPolicySubnets(allow=["198.51.100.0/24"], deny=["198.51.100.7/32"])
        )
    )
    assert session.network_policy.mode == "custom"
    assert session.update_network_policy(NetworkPolicy.deny_all()).network_policy.mode == "deny-all"


def test_extend(sandbox):
    before = sandbox.session().execution_time_limit
    after = sandbox.extend_execution_time_limit(60).execution_time_limit
    assert (after - before).total_seconds() == 60


def test_persistence(client):
    name = unique("kept")
    with client.create_sandbox(name=name, execution_time_limit=600) as sandbox:
        sandbox.fs.write_text("kept", "yes")
        sandbox.stop()
        assert client.get_sandbox(name=name).status == "stopped"
        with client.resume_sandbox(name=name) as again:
            assert again.fs.read_text("kept") == "yes"
            snapshot = again.snapshot()
            assert snapshot.status == "created"
            with client.create_sandbox(
                source=SnapshotSource(snapshot_id=snapshot.id), persistent=False
            ) as copy:
                assert copy.fs.read_text("kept") == "yes"


def test_list(client, sandbox):
    found = client.query_sandboxes(query=SandboxQueryByCreatedAt(tag=TagFilter(key="who", value="py")))
    assert [one.name for one in found] == [sandbox.name]


def test_errors(client, sandbox):
    with pytest.raises(SandboxApiError) as taken:
        with client.create_sandbox(name=sandbox.name, destroy=False):
            pass
    assert (taken.value.status_code, taken.value.code) == (400, "bad_request")
    with pytest.raises(SandboxApiError) as missing:
        client.get_sandbox(name="nobody")
    assert missing.value.status_code == 404
    with pytest.raises(SandboxApiError) as long:
        with client.create_sandbox(execution_time_limit=100 * 3600, destroy=False):
            pass
    assert long.value.code == "sandbox_timeout_invalid"


def test_stop_under_a_command(client):
    with client.create_sandbox(persistent=False) as sandbox:
        session = sandbox.session()
        with pytest.raises((SandboxApiError, SandboxStreamError)):
            session.run_process("sleep", ["600"], on_start=lambda _: session.stop())
        with pytest.raises(SandboxApiError) as over:
            session.run_process("true")
        assert over.value.status_code == 410


def test_drives(client):
    name = unique("drive")
    drive, created = client.get_or_create_drive(name=name)
    assert drive.name == name and created
    assert client.get_drive(name_or_id=name).id == drive.id
    client.delete_drive(name=name)
    with pytest.raises(SandboxApiError):
        client.get_drive(name_or_id=name)


def test_a_fork_of_a_drive(client):
    name, fork = unique("drive"), unique("fork")
    client.get_or_create_drive(name=name)
    with client.create_sandbox(persistent=False, mounts={"/data": name}) as sandbox:
        sandbox.fs.write_text("/data/kept", "yes")
        attached = client.get_drive(name_or_id=name)
        assert attached.current_sandbox_name == sandbox.name
    forked = client.fork_drive(source=name, name=fork)
    assert (forked.name, forked.region, forked.max_size_bytes) == (fork, attached.region, attached.max_size_bytes)
    assert forked.parent_drive_id == attached.id == forked.root_drive_id
    with pytest.raises(SandboxApiError) as taken:
        client.fork_drive(source=name, name=fork)
    assert taken.value.status_code == 409
    with client.create_sandbox(persistent=False, mounts={"/data": fork}) as sandbox:
        assert sandbox.fs.read_text("/data/kept") == "yes"
        sandbox.fs.write_text("/data/kept", "changed")
    with client.create_sandbox(persistent=False, mounts={"/data": name}) as sandbox:
        assert sandbox.fs.read_text("/data/kept") == "yes"
    client.delete_drive(name=name)
    client.delete_drive(name=fork)
