"""Does the same thing over and over, so that the harness can look what it leaves. Usage: leaks.py watches|commands|sandboxes COUNT

After a tenth it prints the sandbox (- where there is none that stays) and waits for a line; after all of them it prints
"done" and waits for another.
"""

import asyncio
import os
import sys

from e2b import AsyncSandbox

AT_ONCE = 8


async def watch(box: AsyncSandbox, number: int) -> None:
    handle = await box.files.watch_dir("/home/user", on_event=lambda event: None)
    await handle.stop()


async def command(box: AsyncSandbox, number: int) -> None:
    assert (await box.commands.run(f"echo {number}")).stdout == f"{number}\n"


async def sandbox(_: None, number: int) -> None:
    box = await AsyncSandbox.create(timeout=300)
    assert (await box.commands.run(f"echo {number}")).stdout == f"{number}\n"
    assert await box.kill()


async def repeat(one, box, count: int) -> None:
    gate = asyncio.Semaphore(AT_ONCE)

    async def bounded(number: int) -> None:
        async with gate:
            await one(box, number)

    await asyncio.gather(*[bounded(number) for number in range(count)])


async def main(what: str, count: int) -> None:
    one = {"watches": watch, "commands": command, "sandboxes": sandbox}[what]
    box = None if one is sandbox else await AsyncSandbox.create(timeout=3600)
    await repeat(one, box, count // 10)
    print(box.sandbox_id if box else "-", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    await repeat(one, box, count - count // 10)
    print("done", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    if box:
        await box.kill()


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
# The client's transport has threads of its own, which now and then abort the interpreter while it shuts down.
sys.stdout.flush()
os._exit(0)
