"""Files of every kind: text, bytes, streams, gzip, many at once, folders and links."""

import gzip
import io
import os

import pytest
from e2b import FileNotFoundException, FileType, InvalidArgumentException, NotFoundException, SandboxException

from conftest import collect, done


async def test_write_tells_what_it_wrote(sandbox, token):
    info = await done(sandbox.files.write(f"{token}.txt", "text"))
    assert (info.name, info.type, info.path) == (f"{token}.txt", FileType.FILE, f"/home/user/{token}.txt")


@pytest.mark.parametrize("octet_stream", [False, True])
@pytest.mark.parametrize("data", ["", "plain", "ä🙂\r\n", b"\x00\x01\xff" * 1000])
async def test_round_trip(sandbox, folder, data, octet_stream):
    await done(sandbox.files.write(f"{folder}/f", data, use_octet_stream=octet_stream))
    expected = data.encode() if isinstance(data, str) else data
    assert await done(sandbox.files.read(f"{folder}/f", format="bytes")) == expected
    assert await collect(await done(sandbox.files.read(f"{folder}/f", format="stream"))) == expected
    if isinstance(data, str):
        assert await done(sandbox.files.read(f"{folder}/f")) == data


@pytest.mark.parametrize("gzipped", [False, True])
async def test_gzip_both_ways(sandbox, folder, gzipped):
    data = os.urandom(1000) * 300
    await done(sandbox.files.write(f"{folder}/f", data, gzip=gzipped))
    assert await done(sandbox.files.read(f"{folder}/f", format="bytes", gzip=gzipped)) == data
    assert int((await done(sandbox.commands.run(f"stat -c %s {folder}/f"))).stdout) == len(data)


async def test_streamed_upload(sandbox, folder, flavour):
    chunks = [bytes([n]) * 40_000 for n in range(8)]

    async def later():
        for chunk in chunks:
            yield chunk

    await done(sandbox.files.write(f"{folder}/f", iter(chunks) if flavour == "sync" else later()))
    assert await done(sandbox.files.read(f"{folder}/f", format="bytes")) == b"".join(chunks)
    await done(sandbox.files.write(f"{folder}/g", io.BytesIO(b"from a file object")))
    assert await done(sandbox.files.read(f"{folder}/g")) == "from a file object"


async def test_large_file(sandbox, folder):
    data = os.urandom(1 << 20) * 20
    await done(sandbox.files.write(f"{folder}/large", data))
    assert await collect(await done(sandbox.files.read(f"{folder}/large", format="stream"))) == data


async def test_early_close_of_a_download(sandbox, folder, flavour):
    await done(sandbox.commands.run(f"head -c 20000000 /dev/zero > {folder}/zeros"))
    reader = await done(sandbox.files.read(f"{folder}/zeros", format="stream"))
    if flavour == "sync":
        next(reader)
        reader.close()
    else:
        await reader.__anext__()
        await reader.aclose()
    assert await done(sandbox.files.exists(f"{folder}/zeros"))


async def test_many_files_in_one_call(sandbox, folder):
    files = [{"path": f"{folder}/{n}/deep/file-{n}.txt", "data": f"content {n}"} for n in range(10)]
    infos = await done(sandbox.files.write_files(files))
    assert [info.path for info in infos] == [file["path"] for file in files]
    for file in files:
        assert await done(sandbox.files.read(file["path"])) == file["data"]
    assert await done(sandbox.files.write_files([])) == []


async def test_mixed_kinds_in_one_call(sandbox, token):
    files = [{"path": f"{token}/text", "data": "t"}, {"path": f"{token}/bytes", "data": b"b"}]
    infos = await done(sandbox.files.write_files(files))
    assert [info.path for info in infos] == [f"/home/user/{token}/text", f"/home/user/{token}/bytes"]


async def test_overwrite_keeps_the_mode(sandbox, folder):
    await done(sandbox.files.write(f"{folder}/f", "a much longer text"))
    await done(sandbox.commands.run(f"chmod 755 {folder}/f"))
    await done(sandbox.files.write(f"{folder}/f", "short"))
    assert await done(sandbox.files.read(f"{folder}/f")) == "short"
    assert (await done(sandbox.files.get_info(f"{folder}/f"))).mode == 0o755


async def test_owners(sandbox, folder):
    await done(sandbox.files.write(f"{folder}/mine/f", "x"))
    await done(sandbox.files.write(f"{folder}/roots/f", "x", user="root"))
    listing = (await done(sandbox.commands.run(f"stat -c '%U:%G %a' {folder}/mine {folder}/mine/f {folder}/roots {folder}/roots/f"))).stdout
    assert listing.split("\n")[:4] == ["user:user 755", "user:user 644", "root:root 755", "root:root 644"]


async def test_missing_file(sandbox, folder):
    for format in ("text", "bytes", "stream"):
        with pytest.raises(FileNotFoundException) as missing:
            await done(sandbox.files.read(f"{folder}/missing", format=format))
        assert isinstance(missing.value, NotFoundException)
    with pytest.raises(FileNotFoundException):
        await done(sandbox.files.get_info(f"{folder}/missing"))
    with pytest.raises(FileNotFoundException):
        await done(sandbox.files.list(f"{folder}/missing"))


async def test_folder_is_not_a_file(sandbox, folder):
    with pytest.raises(InvalidArgumentException, match="is a directory"):
        await done(sandbox.files.read(folder))
    with pytest.raises(InvalidArgumentException, match="is a directory"):
        await done(sandbox.files.write(folder, "x"))


async def test_info_of_a_file(sandbox, folder):
    await done(sandbox.files.write(f"{folder}/f", "four"))
    info = await done(sandbox.files.get_info(f"{folder}/f"))
    assert (info.name, info.path, info.type, info.size) == ("f", f"{folder}/f", FileType.FILE, 4)
    assert (info.mode, info.permissions) == (0o644, "-rw-r--r--")
    assert (info.owner, info.group, info.symlink_target, info.metadata) == ("user", "user", None, None)
    stamp = float((await done(sandbox.commands.run(f"stat -c %.9Y {folder}/f"))).stdout)
    assert abs(info.modified_time.timestamp() - stamp) < 0.001


async def test_info_of_a_folder(sandbox, folder):
    info = await done(sandbox.files.get_info(folder))
    assert (info.type, info.mode, info.permissions) == (FileType.DIR, 0o755, "drwxr-xr-x")
    assert info.size > 0


async def test_info_of_links(sandbox, folder):
    await done(sandbox.files.write(f"{folder}/target", "12345"))
    await done(sandbox.commands.run(f"cd {folder} && ln -s target link && ln -s nowhere broken && mkdir d && ln -s d dirlink"))
    info = await done(sandbox.files.get_info(f"{folder}/link"))
    assert (info.name, info.symlink_target) == ("link", f"{folder}/target")
    assert info.permissions == "Lrwxrwxrwx"
    assert info.type == FileType.SYMLINK, "newer envd marks links by is_symlink"
    assert (await done(sandbox.files.get_info(f"{folder}/dirlink"))).symlink_target == f"{folder}/d"
    assert await done(sandbox.files.exists(f"{folder}/broken"))
    assert await done(sandbox.files.read(f"{folder}/link")) == "12345"


async def test_relative_paths_and_home(sandbox, token):
    await done(sandbox.files.write(f"~/{token}", "home"))
    assert await done(sandbox.files.read(token)) == "home"
    assert (await done(sandbox.files.get_info(token))).path == f"/home/user/{token}"
    await done(sandbox.files.write(token, "roots", user="root"))
    assert await done(sandbox.files.read(f"/root/{token}", user="root")) == "roots"


async def test_awkward_names(sandbox, folder):
    for name in ("with space", "quote'\"", "ümläut-日本", "percent%20", "plus+and&amp=?#", "-dash", ".hidden"):
        await done(sandbox.files.write(f"{folder}/{name}", name))
        assert await done(sandbox.files.read(f"{folder}/{name}")) == name
    names = sorted(entry.name for entry in await done(sandbox.files.list(folder)))
    assert names == sorted(["with space", "quote'\"", "ümläut-日本", "percent%20", "plus+and&amp=?#", "-dash", ".hidden"])


@pytest.mark.parametrize(
    "depth,expected",
    [
        (1, ["file1.txt", "subdir1", "subdir2"]),
        (2, ["file1.txt", "subdir1", "file.txt", "subdir1_1", "subdir2", "subdir2_1"]),
        (3, ["file1.txt", "subdir1", "file.txt", "subdir1_1", "inner.txt", "subdir2", "subdir2_1"]),
        (None, ["file1.txt", "subdir1", "subdir2"]),
    ],
)
async def test_list_by_depth(sandbox, folder, depth, expected):
    await done(
        sandbox.commands.run(
            f"cd {folder} && mkdir -p subdir1/subdir1_1 subdir2/subdir2_1 && touch file1.txt subdir1/file.txt subdir1/subdir1_1/inner.txt"
        )
    )
    options = {} if depth is None else {"depth": depth}
    entries = await done(sandbox.files.list(folder, **options))
    assert [entry.name for entry in entries] == expected
    assert all(entry.path.startswith(folder + "/") for entry in entries)
    assert next(entry for entry in entries if entry.name == "file1.txt").symlink_target is None


async def test_list_refuses_depth_zero_and_files(sandbox, folder):
    with pytest.raises(InvalidArgumentException):
        await done(sandbox.files.list(folder, depth=0))
    await done(sandbox.files.write(f"{folder}/f", ""))
    with pytest.raises(InvalidArgumentException, match="not a directory"):
        await done(sandbox.files.list(f"{folder}/f"))


async def test_make_dir(sandbox, folder):
    assert await done(sandbox.files.make_dir(f"{folder}/a/b/c")) is True
    assert await done(sandbox.files.make_dir(f"{folder}/a/b/c")) is False
    assert (await done(sandbox.files.get_info(f"{folder}/a/b/c"))).owner == "user"
    await done(sandbox.files.write(f"{folder}/f", ""))
    with pytest.raises(InvalidArgumentException):
        await done(sandbox.files.make_dir(f"{folder}/f"))


async def test_rename(sandbox, folder):
    await done(sandbox.files.write(f"{folder}/old", "x"))
    info = await done(sandbox.files.rename(f"{folder}/old", f"{folder}/new/place"))
    assert (info.name, info.path, info.type) == ("place", f"{folder}/new/place", FileType.FILE)
    assert not await done(sandbox.files.exists(f"{folder}/old"))
    await done(sandbox.files.write(f"{folder}/other", "y"))
    await done(sandbox.files.rename(f"{folder}/other", f"{folder}/new/place"))
    assert await done(sandbox.files.read(f"{folder}/new/place")) == "y"
    with pytest.raises(FileNotFoundException):
        await done(sandbox.files.rename(f"{folder}/nothing", f"{folder}/x"))


async def test_remove_and_exists(sandbox, folder):
    await done(sandbox.files.write(f"{folder}/d/e/f", "x"))
    assert await done(sandbox.files.exists(f"{folder}/d")) is True
    await done(sandbox.files.remove(f"{folder}/d"))
    assert await done(sandbox.files.exists(f"{folder}/d")) is False
    await done(sandbox.files.remove(f"{folder}/d"))


async def test_exists_below_a_file(sandbox, folder):
    await done(sandbox.files.write(f"{folder}/f", "x"))
    assert await done(sandbox.files.exists(f"{folder}/f/below")) is False


async def test_no_way_into_the_daemon(sandbox):
    for path in ("/proc/1/environ", "/proc/self/environ", "/proc/1/root/etc/shadow"):
        with pytest.raises(SandboxException):
            await done(sandbox.files.read(path))


async def test_unpacked_when_sent_packed(sandbox, folder):
    packed = gzip.compress(b"inside")
    await done(sandbox.files.write(f"{folder}/f.gz", packed))
    assert await done(sandbox.files.read(f"{folder}/f.gz", format="bytes")) == packed
