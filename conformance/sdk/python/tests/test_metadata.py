"""Metadata of files: headers on the way in, extended attributes inside."""

import pytest
from e2b import InvalidArgumentException

from conftest import done

PAIRS = {"author": "someone", "purpose": "a test: with = and ;"}


@pytest.mark.parametrize("octet_stream", [False, True])
async def test_kept_shown_and_replaced(sandbox, folder, octet_stream):
    path = f"{folder}/f"
    written = await done(sandbox.files.write(path, "x", metadata=PAIRS, use_octet_stream=octet_stream))
    assert written.metadata == PAIRS
    assert (await done(sandbox.files.get_info(path))).metadata == PAIRS
    assert (await done(sandbox.files.list(folder)))[0].metadata == PAIRS
    assert (await done(sandbox.files.rename(path, path + "2"))).metadata == PAIRS
    await done(sandbox.files.write(path + "2", "y", metadata={"other": "1"}))
    assert (await done(sandbox.files.get_info(path + "2"))).metadata == {"other": "1"}
    await done(sandbox.files.write(path + "2", "y"))
    assert (await done(sandbox.files.get_info(path + "2"))).metadata is None


async def test_applies_to_every_file_of_a_call(sandbox, folder):
    files = [{"path": f"{folder}/{n}", "data": "x"} for n in range(3)]
    infos = await done(sandbox.files.write_files(files, metadata=PAIRS))
    assert [info.metadata for info in infos] == [PAIRS] * 3


async def test_keys_are_lowered(sandbox, folder):
    await done(sandbox.files.write(f"{folder}/f", "x", metadata={"MixedCase": "Value"}))
    assert (await done(sandbox.files.get_info(f"{folder}/f"))).metadata == {"mixedcase": "Value"}


async def test_attributes_set_inside_are_seen(sandbox, folder):
    await done(sandbox.files.write(f"{folder}/f", "x"))
    await done(
        sandbox.commands.run(
            f"python3 -c 'import os; os.setxattr(\"{folder}/f\", \"user.e2b.inside\", b\"yes\"); os.setxattr(\"{folder}/f\", \"user.other\", b\"no\")'"
        )
    )
    assert (await done(sandbox.files.get_info(f"{folder}/f"))).metadata == {"inside": "yes"}


async def test_visible_inside(sandbox, folder):
    await done(sandbox.files.write(f"{folder}/f", "x", metadata=PAIRS))
    result = await done(sandbox.commands.run(f"python3 -c 'import os; print(os.getxattr(\"{folder}/f\", \"user.e2b.author\"))'"))
    assert result.stdout == "b'someone'\n"


@pytest.mark.parametrize("metadata", [{"": "x"}, {"a b": "x"}, {"k": "line\nbreak"}, {"ü": "x"}])
async def test_bad_ones_are_refused_before_they_are_sent(sandbox, folder, metadata):
    with pytest.raises(InvalidArgumentException):
        await done(sandbox.files.write(f"{folder}/f", "x", metadata=metadata))
    assert not await done(sandbox.files.exists(f"{folder}/f"))
