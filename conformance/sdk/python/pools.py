"""Routed creates, by a program that knows nothing of pools but metadata.

Usage: pools.py refusals    tries what no pool can serve, and looks what it is told
       pools.py burst N     makes N sandboxes at once, uses and kills them, prints how many there were
       pools.py gpus        makes one sandbox with a GPU, and tries one with a GPU that nobody has
"""

import asyncio
import os
import sys

from e2b import AsyncSandbox, Sandbox, SandboxException


def refusals() -> None:
    box = Sandbox.create(metadata={"isthmus:pools": "local", "customer": "4711"})
    assert box.get_info().metadata == {"isthmus:pools": "local", "customer": "4711"}, box.get_info()
    assert box.commands.run("echo here").stdout == "here\n"
    box.kill()
    for metadata, says in [
        ({"isthmus:isolatoin": "microvm"}, '"isolatoin" in the metadata is no requirement: "isolation" may be meant'),
        ({"isthmus:isolation": "best"}, "isolation in the metadata"),
        ({"isthmus:isolation": "microvm"}, "local lacks isolation=microvm"),
        ({"isthmus:region": "eu"}, "local lacks region=eu"),
        ({"isthmus:pools": "nowhere"}, "there is no pool or provider nowhere"),
    ]:
        try:
            Sandbox.create(metadata=metadata).kill()
        except SandboxException as error:
            assert str(error).startswith("400: ") and says in str(error), error
        else:
            raise AssertionError(f"{metadata} was served")
    print("refused as it should be")


def gpus() -> None:
    box = Sandbox.create(metadata={"isthmus:gpu": "h100"})
    assert box.commands.run("echo here").stdout == "here\n"
    box.kill()
    try:
        Sandbox.create(metadata={"isthmus:gpu": "voodoo"}).kill()
    except SandboxException as error:
        assert str(error).startswith("400: "), error
        assert "modal lacks gpu=voodoo" in str(error) and "local lacks gpu=voodoo" in str(error), error
    else:
        raise AssertionError("a GPU that nobody has was served")
    print("one sandbox")


async def burst(count: int) -> None:
    boxes = await asyncio.gather(*[AsyncSandbox.create(timeout=300, request_timeout=120) for _ in range(count)])
    assert len({box.sandbox_id for box in boxes}) == count
    gate = asyncio.Semaphore(10)

    async def use(box: AsyncSandbox) -> None:
        async with gate:
            assert (await box.commands.run("echo $E2B_SANDBOX_ID")).stdout == box.sandbox_id + "\n"
            assert await box.kill()

    await asyncio.gather(*[use(box) for box in boxes])
    print(f"{count} sandboxes")


if sys.argv[1] == "burst":
    asyncio.run(burst(int(sys.argv[2])))
elif sys.argv[1] == "gpus":
    gpus()
else:
    refusals()
# The client's transport has threads of its own, which now and then abort the interpreter while it shuts down.
sys.stdout.flush()
os._exit(0)
