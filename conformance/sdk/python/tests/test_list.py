"""Listing: pages, order, and the filters with all their encodings."""

from datetime import datetime, timedelta, timezone

import pytest_asyncio
from e2b import SandboxQuery, SandboxState

from conftest import done
from environment import MEMORY_MB

AWKWARD = {"a b": "c&d=é", "100%": "a+b/ü?#"}


async def pages(paginator):
    """All pages of a listing, as lists of ids."""
    found = []
    while paginator.has_next:
        found.append([item.sandbox_id for item in await done(paginator.next_items())])
    return found


@pytest_asyncio.fixture(scope="module")
async def three(sdk):
    """Three sandboxes with a mark of their own, oldest first."""
    mark = {"mark": datetime.now().isoformat(), **AWKWARD}
    boxes = [await done(sdk.create(timeout=120, metadata=mark)) for _ in range(3)]
    yield mark, boxes
    for box in boxes:
        await done(box.kill())


async def test_pages_of_one(sdk, three):
    mark, boxes = three
    found = await pages(sdk.list(query=SandboxQuery(metadata=mark), limit=1))
    assert [len(page) for page in found] == [1, 1, 1]
    assert [page[0] for page in found] == [box.sandbox_id for box in reversed(boxes)]


async def test_oldest_first(sdk, three):
    mark, boxes = three
    found = await pages(sdk.list(query=SandboxQuery(metadata=mark), limit=2, order="asc"))
    assert [len(page) for page in found] == [2, 1]
    assert sum(found, []) == [box.sandbox_id for box in boxes]


async def test_resumes_from_a_token(sdk, three):
    mark, boxes = three
    first = sdk.list(query=SandboxQuery(metadata=mark), limit=1)
    head = [item.sandbox_id for item in await done(first.next_items())]
    rest = await pages(sdk.list(query=SandboxQuery(metadata=mark), limit=1, next_token=first.next_token))
    assert head + sum(rest, []) == [box.sandbox_id for box in reversed(boxes)]


async def test_metadata_must_match_wholly(sdk, three):
    mark, boxes = three
    ids = {box.sandbox_id for box in boxes}
    for key, value in AWKWARD.items():
        found = sum(await pages(sdk.list(query=SandboxQuery(metadata={key: value}))), [])
        assert ids <= set(found), (key, value)
        found = sum(await pages(sdk.list(query=SandboxQuery(metadata={key: value + "x"}))), [])
        assert not ids & set(found), (key, value)


async def test_filters(sdk, three):
    mark, boxes = three
    ids = {box.sandbox_id for box in boxes}
    now = datetime.now(timezone.utc)

    async def hits(**query):
        return ids & set(sum(await pages(sdk.list(query=SandboxQuery(metadata={"mark": mark["mark"]}, **query))), []))

    assert await hits(state=[SandboxState.RUNNING]) == ids
    assert await hits(state=[SandboxState.PAUSED]) == set()
    assert await hits(state=[SandboxState.RUNNING, SandboxState.PAUSED]) == ids
    assert await hits(template="base") == ids
    assert await hits(template="no-such-template") == set()
    assert await hits(started_after=now - timedelta(minutes=5)) == ids
    assert await hits(started_after=now + timedelta(minutes=5)) == set()


async def test_listed_values(sdk, three):
    mark, boxes = three
    item = (await done(sdk.list(query=SandboxQuery(metadata=mark), limit=1).next_items()))[0]
    assert item.metadata == mark
    assert item.state == SandboxState.RUNNING
    assert item.started_at.tzinfo is not None and item.end_at > item.started_at
    assert (item.cpu_count, item.memory_mb, item.name) == (2, MEMORY_MB, "base")
