"""What a client sees of limits: the harness configures two sandboxes for a team, or for the machine."""

import time

import pytest
from e2b import RateLimitException, ServiceBusyException

from conftest import done
from environment import surroundings

KINDS = {"team": RateLimitException, "machine": ServiceBusyException}


async def test_one_too_many(make, sdk):
    kind = KINDS[surroundings("ISTHMUS_TEST_LIMIT")]
    first, second = await make(), await make()
    started = time.monotonic()
    with pytest.raises(kind) as refusal:
        await done(sdk.create(retries=0))
    assert refusal.value.status_code == (429 if kind is RateLimitException else 503)
    assert time.monotonic() - started < 20
    await done(first.kill())
    third = await make()
    assert (await done(third.commands.run("echo room again"))).stdout == "room again\n"
    assert await done(second.is_running())


async def test_retries(make, sdk):
    """The client's own retries find room on a full machine; a team at its limit is told at once, for good."""
    limit = surroundings("ISTHMUS_TEST_LIMIT")
    await make(timeout=3 if limit == "machine" else 120)
    await make()
    if limit == "machine":
        box = await done(sdk.create(retries=10, request_timeout=30))
        await done(box.kill())
        return
    started = time.monotonic()
    with pytest.raises(RateLimitException):
        await done(sdk.create(retries=10, request_timeout=30))
    assert time.monotonic() - started < 5
