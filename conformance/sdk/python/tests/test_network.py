"""The way out of a sandbox: on by default, off when asked, and never into the host."""

import pytest
from e2b import CommandExitException

from conftest import done
from environment import surroundings


async def test_by_name(sandbox):
    url = surroundings("ISTHMUS_TEST_INTERNET")
    result = await done(sandbox.commands.run(f"curl -sS -m 10 {url}"))
    assert "internet" in result.stdout


async def test_python_and_node_get_out_too(sandbox):
    url = surroundings("ISTHMUS_TEST_INTERNET")
    result = await done(sandbox.commands.run(f"python3 -c 'import urllib.request as u; print(u.urlopen(\"{url}\", timeout=10).read().decode())'"))
    assert "internet" in result.stdout
    result = await done(sandbox.commands.run(f"node -e 'require(\"http\").get(\"{url}\", r => r.pipe(process.stdout))'"))
    assert "internet" in result.stdout


async def test_names_that_do_not_exist(sandbox):
    with pytest.raises(CommandExitException) as failure:
        await done(sandbox.commands.run("curl -sS -m 10 http://no-such-name.invalid/"))
    assert failure.value.exit_code == 6


@pytest.mark.parametrize("options", [{"allow_internet_access": False}, {"network": {"deny_out": ["0.0.0.0/0"]}}])
async def test_off_when_asked(make, options):
    url = surroundings("ISTHMUS_TEST_INTERNET")
    address = surroundings("ISTHMUS_TEST_INTERNET_ADDRESS")
    box = await make(**options)
    for target in (url, address):
        with pytest.raises(CommandExitException):
            await done(box.commands.run(f"curl -sS -m 4 {target}"))
    if "allow_internet_access" in options:
        assert (await done(box.get_info())).allow_internet_access is False


@pytest.mark.parametrize("internet", [True, False])
async def test_the_host_is_out_of_reach(make, internet):
    refused = surroundings("ISTHMUS_TEST_REFUSED").split(",")
    box = await make(allow_internet_access=internet)
    for target in refused:
        with pytest.raises(CommandExitException) as failure:
            await done(box.commands.run(f"curl -sS -m 4 {target}"))
        assert failure.value.exit_code in (7, 28, 35, 52, 55, 56), target


async def test_own_loopback_works(sandbox):
    command = await done(sandbox.commands.run("cd /usr/share && exec python3 -m http.server 8123 --bind 127.0.0.1", background=True))
    result = await done(sandbox.commands.run("curl -sS --retry 20 --retry-connrefused --retry-delay 1 http://localhost:8123/ | head -c 15"))
    assert result.stdout.startswith("<!DOCTYPE")
    await done(command.kill())
