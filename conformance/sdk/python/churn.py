"""Clients that make, use and kill sandboxes of a server that is killed again and again. Usage: churn.py CLIENTS

It goes on until its input ends, then takes away what a create without an answer left, and prints what it saw as JSON:
sandboxes used and killed, creates without an answer, sandboxes that were lost, and numbers that were made twice.
"""

import asyncio
import collections
import json
import os
import sys
import uuid

import httpx
from e2b import AsyncSandbox, NotFoundException, SandboxException, SandboxQuery
from e2b.exceptions import SandboxNotRunningException, ServiceBusyException

RUN = uuid.uuid4().hex
# What a call may come to when the server dies under it.
BROKEN = (httpx.TransportError, httpx.StreamError, SandboxException, ServiceBusyException, OSError)
seen = collections.Counter(used=0, unanswered=0, lost=0, doubled=0)
stopping = asyncio.Event()


async def insist(call):
    """Repeats a call until it has an answer, be it that there is no such sandbox."""
    while True:
        try:
            return await call()
        except NotFoundException:
            raise
        except BROKEN:
            await asyncio.sleep(0.05)


async def use(box: AsyncSandbox) -> None:
    """Runs a command, as often as the server dies under it; nobody may call the sandbox gone."""
    while True:
        try:
            result = await box.commands.run("echo $E2B_SANDBOX_ID")
            assert result.stdout == box.sandbox_id + "\n", result
            return
        except SandboxNotRunningException:
            raise
        except BROKEN:
            await insist(box.get_info)


async def client(number: int) -> None:
    for turn in range(1_000_000):
        if stopping.is_set():
            return
        try:
            box = await AsyncSandbox.create(timeout=3600, metadata={"run": RUN, "number": f"{number}-{turn}"})
        except BROKEN:
            seen["unanswered"] += 1
            await asyncio.sleep(0.05)
            continue
        try:
            await use(box)
        except (NotFoundException, SandboxNotRunningException) as error:
            seen["lost"] += 1
            print(f"{box.sandbox_id}: {error}", file=sys.stderr)
            continue
        await insist(box.kill)  # false is fine: an earlier one may have been done without an answer
        seen["used"] += 1


async def alive() -> list:
    pages, items = AsyncSandbox.list(query=SandboxQuery(metadata={"run": RUN}), limit=100), []
    while pages.has_next:
        items += await pages.next_items()
    return items


async def main(clients: int) -> None:
    running = [asyncio.create_task(client(number)) for number in range(clients)]
    await asyncio.to_thread(sys.stdin.read)
    stopping.set()
    await asyncio.gather(*running)
    left = await insist(alive)
    numbers = collections.Counter(item.metadata["number"] for item in left)
    seen["doubled"] = sum(count > 1 for count in numbers.values())
    for item in left:
        await AsyncSandbox.kill(item.sandbox_id)
    print(json.dumps(seen))


asyncio.run(main(int(sys.argv[1])))
# The client's transport has threads of its own, which now and then abort the interpreter while it shuts down.
sys.stdout.flush()
os._exit(0)
