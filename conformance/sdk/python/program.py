"""One of two programs that run at once: makes N sandboxes, uses them, and kills them when all have lived. Usage: program.py N"""

import asyncio
import os
import sys

from e2b import AsyncSandbox, SandboxQuery

# How many calls are under way at a time, as in a program of that kind.
AT_ONCE = 10


async def each(work, items) -> list:
    """Does the work for all items, AT_ONCE at a time."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(item):
        async with gate:
            return await work(item)

    return await asyncio.gather(*[one(item) for item in items])


async def create(number: int) -> AsyncSandbox:
    return await AsyncSandbox.create(timeout=300, metadata={"program": "python", "number": str(number)})


async def use(box: AsyncSandbox) -> None:
    await box.files.write("name", box.sandbox_id)
    result = await box.commands.run("cat name; echo $E2B_SANDBOX_ID")
    assert result.stdout == box.sandbox_id + box.sandbox_id + "\n", result
    sleeper = await box.commands.run("sleep 600", background=True, timeout=0)
    assert sleeper.pid in [item.pid for item in await box.commands.list()]
    await sleeper.disconnect()
    assert await box.files.read("name") == box.sandbox_id


async def main(count: int) -> None:
    boxes = await each(create, range(count))
    await each(use, boxes)
    alive = await AsyncSandbox.list(query=SandboxQuery(metadata={"program": "python"}), limit=100).next_items()
    assert {box.sandbox_id for box in boxes} == {item.sandbox_id for item in alive}, "not all are alive at once"
    assert all(await each(lambda box: box.kill(), boxes))
    print(f"python: {count} sandboxes made, used and killed")


asyncio.run(main(int(sys.argv[1])))
# The client's transport has threads of its own, which now and then abort the interpreter while it shuts down.
sys.stdout.flush()
os._exit(0)
