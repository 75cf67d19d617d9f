"""Fixtures: every case that takes `sdk` runs twice, with the sync and with the async client.

`done` makes one text serve both: it awaits what the async client returns and passes on what the sync client
returns.
"""

import asyncio
import inspect
import time
import uuid

import httpx
import pytest
import pytest_asyncio
from e2b import AsyncSandbox, Sandbox


async def done(value):
    """The result of a call of either client."""
    return await value if inspect.isawaitable(value) else value


async def collect(reader) -> bytes:
    """All chunks of a streamed download of either client."""
    if hasattr(reader, "__aiter__"):
        return b"".join([chunk async for chunk in reader])
    return b"".join(reader)


async def eventually(check, timeout: float = 40.0, interval: float = 0.05):
    """Calls `check` until it returns something true, and returns that; fails with its last answer."""
    deadline = time.monotonic() + timeout
    while True:
        value = await done(check())
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {timeout} s, last answer: {value!r}"
        await asyncio.sleep(interval)


def pytest_collection_modifyitems(config, items):
    """Leaves out what a flavour does not have: the case says so with the mark `only`."""
    left_out = [item for item in items if (mark := item.get_closest_marker("only")) and item.callspec.params["flavour"] != mark.args[0]]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="module", params=["sync", "async"])
def flavour(request):
    return request.param


@pytest.fixture(scope="module")
def sdk(flavour):
    """The Sandbox class of the flavour under test."""
    return Sandbox if flavour == "sync" else AsyncSandbox


@pytest_asyncio.fixture(scope="module")
async def sandbox(sdk):
    """One sandbox for all cases of a module: they keep to their own folders and ports."""
    box = await done(sdk.create(timeout=300))
    yield box
    await done(box.kill())


@pytest_asyncio.fixture
async def make(sdk):
    """Makes sandboxes that the case may change or kill; what is left of them is killed afterwards."""
    made = []

    async def create(**options):
        options.setdefault("timeout", 120)
        box = await done(sdk.create(**options))
        made.append(box)
        return box

    yield create
    for box in made:
        await done(box.kill())


@pytest.fixture
def token():
    """A name that no other case uses."""
    return uuid.uuid4().hex[:12]


@pytest_asyncio.fixture
async def folder(sandbox, token):
    """A fresh folder in the module's sandbox, as an absolute path."""
    path = f"/home/user/{token}"
    await done(sandbox.files.make_dir(path))
    return path


@pytest_asyncio.fixture(scope="session")
async def web():
    """A plain HTTP client, as any visitor of a sandbox's port has. It honours SSL_CERT_FILE."""
    async with httpx.AsyncClient(timeout=20) as client:
        yield client
