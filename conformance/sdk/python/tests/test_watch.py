"""Watching folders: by polling (the sync client) and by stream (the async client)."""

import pytest
import pytest_asyncio
from e2b import FileNotFoundException, FilesystemEventType, InvalidArgumentException, SandboxException, TimeoutException

from conftest import done, eventually


class Watch:
    """One watch of either client, with its events collected."""

    def __init__(self, sandbox, flavour):
        self.sandbox, self.flavour, self.events, self.handle, self.ended = sandbox, flavour, [], None, []

    async def start(self, path, **options):
        if self.flavour == "async":
            options |= {"on_event": self.events.append, "on_exit": self.ended.append}
        self.handle = await done(self.sandbox.files.watch_dir(path, **options))

    async def poll(self):
        if self.flavour == "sync":
            self.events += self.handle.get_new_events()
        return self.events

    async def sees(self, name, kind):
        async def seen():
            return [event for event in await self.poll() if event.name == name and event.type == kind]

        return (await eventually(seen))[0]


@pytest_asyncio.fixture
async def watch(sandbox, flavour):
    watch = Watch(sandbox, flavour)
    yield watch
    if watch.handle is not None and not watch.handle.__dict__.get("_closed"):
        await done(watch.handle.stop())


@pytest.mark.only("sync")
async def test_polling_right_after_an_upload(sandbox, folder, flavour):
    handle = sandbox.files.watch_dir(folder)
    sandbox.files.write(f"{folder}/new", "content")
    events = handle.get_new_events()
    assert [event.type for event in events] == [
        FilesystemEventType.CREATE,
        FilesystemEventType.CHMOD,
        FilesystemEventType.WRITE,
    ]
    assert {event.name for event in events} == {"new"}
    assert handle.get_new_events() == []
    handle.stop()
    with pytest.raises(SandboxException, match="stopped"):
        handle.get_new_events()


async def test_every_kind(sandbox, folder, watch):
    await done(sandbox.files.write(f"{folder}/f", "x"))
    await watch.start(folder)
    await done(sandbox.files.write(f"{folder}/f", "y"))
    await watch.sees("f", FilesystemEventType.WRITE)
    await done(sandbox.commands.run(f"chmod 600 {folder}/f"))
    await watch.sees("f", FilesystemEventType.CHMOD)
    await done(sandbox.files.rename(f"{folder}/f", f"{folder}/g"))
    await watch.sees("f", FilesystemEventType.RENAME)
    await watch.sees("g", FilesystemEventType.CREATE)
    await done(sandbox.files.remove(f"{folder}/g"))
    await watch.sees("g", FilesystemEventType.REMOVE)


async def test_recursive(sandbox, folder, watch):
    await done(sandbox.files.make_dir(f"{folder}/a"))
    await watch.start(folder, recursive=True)
    await done(sandbox.files.write(f"{folder}/a/b", "x"))
    await watch.sees("a/b", FilesystemEventType.WRITE)
    await done(sandbox.files.make_dir(f"{folder}/new/deep"))
    await watch.sees("new", FilesystemEventType.CREATE)
    await watch.sees("new/deep", FilesystemEventType.CREATE)
    await done(sandbox.files.write(f"{folder}/new/deep/file", "x"))
    await watch.sees("new/deep/file", FilesystemEventType.WRITE)


async def test_not_recursive(sandbox, folder, watch):
    await done(sandbox.files.make_dir(f"{folder}/a"))
    await watch.start(folder)
    await done(sandbox.files.write(f"{folder}/a/inner", "x"))
    await done(sandbox.files.write(f"{folder}/outer", "x"))
    await watch.sees("outer", FilesystemEventType.WRITE)
    assert not [event for event in watch.events if "inner" in event.name]


async def test_with_entries(sandbox, folder, watch):
    await watch.start(folder, include_entry=True)
    await done(sandbox.files.write(f"{folder}/f", "four"))
    event = await watch.sees("f", FilesystemEventType.WRITE)
    assert (event.entry.name, event.entry.path, event.entry.type.value) == ("f", f"{folder}/f", "file")
    assert event.entry.owner == "user"
    await done(sandbox.files.remove(f"{folder}/f"))
    assert (await watch.sees("f", FilesystemEventType.REMOVE)).entry is None


async def test_without_entries(sandbox, folder, watch):
    await watch.start(folder)
    await done(sandbox.files.write(f"{folder}/f", "four"))
    assert (await watch.sees("f", FilesystemEventType.CREATE)).entry is None


async def test_of_missing_and_of_a_file(sandbox, folder, watch):
    with pytest.raises(FileNotFoundException):
        await watch.start(f"{folder}/missing")
    await done(sandbox.files.write(f"{folder}/f", ""))
    with pytest.raises(InvalidArgumentException):
        await watch.start(f"{folder}/f")


async def test_two_watches_do_not_mix(sandbox, folder, flavour):
    first, second = Watch(sandbox, flavour), Watch(sandbox, flavour)
    for name, watch in (("a", first), ("b", second)):
        await done(sandbox.files.make_dir(f"{folder}/{name}"))
        await watch.start(f"{folder}/{name}")
    await done(sandbox.files.write(f"{folder}/a/f", "x"))
    await first.sees("f", FilesystemEventType.WRITE)
    assert await second.poll() == []
    for watch in (first, second):
        await done(watch.handle.stop())


@pytest.mark.only("async")
async def test_stop_ends_a_stream_cleanly(sandbox, folder, flavour, watch):
    await watch.start(folder)
    await done(sandbox.files.write(f"{folder}/f", "x"))
    await watch.sees("f", FilesystemEventType.WRITE)
    await watch.handle.stop()
    await eventually(lambda: watch.ended)
    assert watch.ended == [None]


@pytest.mark.only("async")
async def test_a_stream_ends_at_its_timeout(sandbox, folder, flavour, watch):
    await watch.start(folder, timeout=4)
    await eventually(lambda: watch.ended)
    assert isinstance(watch.ended[0], TimeoutException)
