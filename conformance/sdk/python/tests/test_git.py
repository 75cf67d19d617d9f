"""The SDK's git module, against a bare repository inside the sandbox."""

import pytest

from conftest import done

AUTHOR = {"author_name": "Test Person", "author_email": "test@example.com"}


async def seeded(sandbox, folder):
    """A bare repository with one commit, and a work tree of it."""
    git = sandbox.git
    await done(git.init(f"{folder}/origin.git", bare=True, initial_branch="main"))
    await done(git.init(f"{folder}/work", initial_branch="main"))
    await done(git.remote_add(f"{folder}/work", "origin", f"file://{folder}/origin.git"))
    await done(sandbox.files.write(f"{folder}/work/README.md", "hello"))
    await done(git.add(f"{folder}/work"))
    await done(git.commit(f"{folder}/work", "first", **AUTHOR))
    await done(git.push(f"{folder}/work", "origin", "main"))
    return f"{folder}/origin.git", f"{folder}/work"


async def test_init_add_commit_status(sandbox, folder):
    git, work = sandbox.git, f"{folder}/repo"
    await done(git.init(work, initial_branch="trunk"))
    await done(sandbox.files.write(f"{work}/a.txt", "a"))
    status = await done(git.status(work))
    assert (status.current_branch, status.has_untracked, status.is_clean) == ("trunk", True, False)
    await done(git.add(work, files=["a.txt"]))
    assert (await done(git.status(work))).has_staged
    await done(git.commit(work, "a message with 'quotes' and $dollars", **AUTHOR))
    assert (await done(git.status(work))).is_clean
    log = (await done(sandbox.commands.run("git log -1 --format='%s|%an|%ae'", cwd=work))).stdout
    assert log == "a message with 'quotes' and $dollars|Test Person|test@example.com\n"


async def test_clone_push_and_pull(sandbox, folder):
    git = sandbox.git
    origin, work = await seeded(sandbox, folder)
    await done(git.clone(f"file://{origin}", path=f"{folder}/clone"))
    assert await done(sandbox.files.read(f"{folder}/clone/README.md")) == "hello"
    await done(sandbox.files.write(f"{folder}/clone/more.txt", "more"))
    await done(git.add(f"{folder}/clone"))
    await done(git.commit(f"{folder}/clone", "second", **AUTHOR))
    await done(git.push(f"{folder}/clone", "origin", "main"))
    await done(git.pull(work, "origin", "main"))
    assert await done(sandbox.files.read(f"{work}/more.txt")) == "more"


async def test_shallow_clone_of_a_branch(sandbox, folder):
    git = sandbox.git
    origin, work = await seeded(sandbox, folder)
    await done(git.create_branch(work, "side"))
    await done(sandbox.files.write(f"{work}/side.txt", "s"))
    await done(git.add(work))
    await done(git.commit(work, "on the side", **AUTHOR))
    await done(git.push(work, "origin", "side"))
    await done(git.clone(f"file://{origin}", path=f"{folder}/shallow", branch="side", depth=1))
    assert (await done(sandbox.commands.run("git log --oneline | wc -l", cwd=f"{folder}/shallow"))).stdout.strip() == "1"


async def test_branches(sandbox, folder):
    git = sandbox.git
    _, work = await seeded(sandbox, folder)
    await done(git.create_branch(work, "feature"))
    found = await done(git.branches(work))
    assert (sorted(found.branches), found.current_branch) == (["feature", "main"], "feature")
    await done(git.checkout_branch(work, "main"))
    await done(git.delete_branch(work, "feature", force=True))
    assert (await done(git.branches(work))).branches == ["main"]


async def test_configuration(sandbox):
    git = sandbox.git
    await done(git.configure_user("Some Name", "some@example.com"))
    assert await done(git.get_config("user.name")) == "Some Name"
    await done(git.set_config("core.editor", "true"))
    assert await done(git.get_config("core.editor")) == "true"
    assert await done(git.get_config("no.such")) is None


async def test_failure_is_an_exception(sandbox, folder):
    with pytest.raises(Exception, match="(?i)repository"):
        await done(sandbox.git.clone(f"file://{folder}/missing.git", path=f"{folder}/x"))
